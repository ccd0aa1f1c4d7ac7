//! Map keys, with one copy in the process for each distinct text.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

/// Longer keys are not shared: they are rare, and an interner should not keep them.
const LONGEST_SHARED: usize = 128;
/// The prefix of managed fields' keys that identify a list item, often by a uid: they are read once and not kept.
const OF_ITEM: &str = "k:{";
/// The number of tables, so that threads rarely contend for a lock.
const SHARDS: usize = 16;
/// A table with fewer keys is not swept.
const SWEEP_FROM: usize = 256;

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables {
    state: DefaultHashBuilder::default(),
    shards: std::array::from_fn(|_| Mutex::default()),
});

/// A map key: immutable text, shared by all objects of the process that use it.
///
/// A key takes 16 bytes and is cheap to clone. Unused keys are swept from the table as it grows, so the keys of users' data and
/// labels are not kept forever.
#[derive(Clone)]
pub struct Key(Arc<str>);

struct Tables {
    state: DefaultHashBuilder,
    shards: [Mutex<Table>; SHARDS],
}

#[derive(Default)]
struct Table {
    keys: HashTable<Key>,
    sweep_at: usize,
}

impl Table {
    /// Returns the key for `text`; `hash` is its [`hash_of`].
    fn intern(&mut self, text: &str, hash: u64) -> Key {
        if let Some(key) = self.keys.find(hash, |key| key.as_str() == text) {
            return key.clone();
        }
        if self.keys.len() >= self.sweep_at {
            // A count of one is the table's own, and only a holder of the table's lock could raise it.
            self.keys.retain(|key| Arc::strong_count(&key.0) > 1);
            self.sweep_at = SWEEP_FROM.max(self.keys.len() * 2);
        }
        let key = Key(Arc::from(text));
        self.keys
            .insert_unique(hash, key.clone(), |key| hash_of(key));
        key
    }
}

fn hash_of(text: &str) -> u64 {
    TABLES.state.hash_one(text)
}

impl Key {
    /// Returns the key with this text. It shares its allocation with every other live key of the same text, if the text has at
    /// most 128 bytes and does not begin with `k:{`.
    pub fn new(text: &str) -> Key {
        if text.len() > LONGEST_SHARED || text.starts_with(OF_ITEM) {
            return Key(Arc::from(text));
        }
        let hash = hash_of(text);
        let shard = usize::try_from(hash >> 32).unwrap_or(0) % SHARDS;
        // A table is consistent between any two statements: after a panic under the lock it can be used.
        let mut table = TABLES.shards[shard].lock();
        table.intern(text, hash)
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Key {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Key {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key::new(text)
    }
}

impl From<String> for Key {
    fn from(text: String) -> Key {
        Key::new(&text)
    }
}

impl From<Box<str>> for Key {
    fn from(text: Box<str>) -> Key {
        Key::new(&text)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0 == other.0
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        self.0.cmp(&other.0)
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The same hash as `str`, which `Borrow<str>` requires.
        self.as_str().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_keys_of_one_text_are_one_allocation() {
        assert!(Arc::ptr_eq(
            &Key::new("replicas").0,
            &Key::new("replicas").0
        ));
    }

    #[test]
    fn long_keys_and_keys_of_items_are_equal_without_being_shared() {
        let long = "k".repeat(LONGEST_SHARED + 1);
        for text in [&*long, r#"k:{"uid":"u-1"}"#] {
            let (a, b) = (Key::new(text), Key::new(text));
            assert!(!Arc::ptr_eq(&a.0, &b.0));
            assert_eq!(a, b);
            assert_eq!(a.cmp(&b), Ordering::Equal);
        }
    }

    #[test]
    fn keys_that_nobody_holds_are_swept() {
        let mut table = Table::default();
        let held = table.intern("held", hash_of("held"));
        for n in 0..100_000 {
            let text = format!("user-made-{n}");
            table.intern(&text, hash_of(&text));
        }
        assert!(table.keys.len() <= SWEEP_FROM, "{}", table.keys.len());
        assert!(Arc::ptr_eq(
            &held.0,
            &table.intern("held", hash_of("held")).0
        ));
    }

    #[test]
    fn keys_sort_by_their_text() {
        let mut keys = [Key::new("b"), Key::new("a.b"), Key::new("a")];
        keys.sort();
        assert_eq!(keys.each_ref().map(Key::as_str), ["a", "a.b", "b"]);
    }
}
