//! Shares equal values within the process.

use std::{
    hash::{BuildHasher, Hash},
    sync::{Arc, Weak},
};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

/// The minimum size of the table before it is swept.
const SWEEP_FROM: usize = 64;

/// The shared values of one type; dead entries are swept when the table has doubled since the last sweep.
pub struct Interner<T>(Mutex<Option<Table<T>>>);

struct Table<T> {
    hasher: DefaultHashBuilder,
    /// With the hash of each: a dropped value cannot be hashed again.
    held: HashTable<(u64, Weak<T>)>,
    sweep_at: usize,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Interner<T> {
    /// Creates an empty interner, for a static.
    pub const fn new() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// Returns the shared instance of an equal value.
    pub fn share(&self, value: T) -> Arc<T> {
        self.with(|table| table.share(value))
    }

    /// Returns the live value that hashes as `key` does and that `is_it` accepts.
    pub fn find<Q: Hash + ?Sized>(&self, key: &Q, is_it: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        self.with(|table| table.find(table.hasher.hash_one(key), is_it))
    }

    fn with<R>(&self, run: impl FnOnce(&mut Table<T>) -> R) -> R {
        // The table is consistent between any two statements: after a panic under the lock it can be used.
        let mut table = self.0.lock();
        run(table.get_or_insert_with(|| Table {
            hasher: DefaultHashBuilder::default(),
            held: HashTable::new(),
            sweep_at: SWEEP_FROM,
        }))
    }
}

impl<T: Hash + Eq> Table<T> {
    fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<Arc<T>> {
        let mut known = None;
        self.held.find(hash, |(_, weak)| {
            known = weak.upgrade().filter(|known| is_it(known));
            known.is_some()
        });
        known
    }

    fn share(&mut self, value: T) -> Arc<T> {
        let hash = self.hasher.hash_one(&value);
        if let Some(known) = self.find(hash, |known| *known == value) {
            return known;
        }
        if self.held.len() >= self.sweep_at {
            self.held.retain(|(_, weak)| weak.strong_count() > 0);
            self.sweep_at = SWEEP_FROM.max(self.held.len() * 2);
        }
        let shared = Arc::new(value);
        self.held
            .insert_unique(hash, (hash, Arc::downgrade(&shared)), |(hash, _)| *hash);
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_what_nobody_holds_is_swept() {
        let interner = Interner::new();
        let held = interner.share(7);
        assert!(Arc::ptr_eq(&held, &interner.share(7)));
        for value in 100..10_000 {
            interner.share(value);
        }
        let table = interner.0.lock();
        let known = table.as_ref().unwrap().held.len();
        assert!(known <= SWEEP_FROM, "{known}");
        drop(table);
        assert!(Arc::ptr_eq(&held, &interner.share(7)));
    }
}
