//! Equal parts of records, held once in the process.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, Mutex, PoisonError, Weak},
};

/// The table is not swept before it holds so many.
const SWEEP_FROM: usize = 64;

/// What is held of one type; dead entries are swept when the table has doubled since the last sweep.
pub(super) struct Interner<T>(Mutex<Option<Table<T>>>);

struct Table<T> {
    hasher: RandomState,
    by_hash: HashMap<u64, Vec<Weak<T>>>,
    sweep_at: usize,
}

impl<T: Hash + Eq> Interner<T> {
    /// One that holds nothing; for a static.
    pub(super) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// The value, as everybody has it who has an equal one.
    pub(super) fn share(&self, value: T) -> Arc<T> {
        // The table is whole between any two statements, so a poisoned lock is as good as any.
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = table.get_or_insert_with(|| Table {
            hasher: RandomState::new(),
            by_hash: HashMap::new(),
            sweep_at: SWEEP_FROM,
        });
        table.share(value)
    }
}

impl<T: Hash + Eq> Table<T> {
    fn share(&mut self, value: T) -> Arc<T> {
        let bucket = self
            .by_hash
            .entry(self.hasher.hash_one(&value))
            .or_default();
        let mut known = bucket.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|known| **known == value) {
            return known;
        }
        let shared = Arc::new(value);
        bucket.push(Arc::downgrade(&shared));
        if self.by_hash.len() >= self.sweep_at {
            self.by_hash.retain(|_, bucket| {
                bucket.retain(|weak| weak.strong_count() > 0);
                !bucket.is_empty()
            });
            self.sweep_at = SWEEP_FROM.max(self.by_hash.len() * 2);
        }
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
        let table = interner.0.lock().unwrap();
        let known = table.as_ref().unwrap().by_hash.len();
        assert!(known <= SWEEP_FROM, "{known}");
        drop(table);
        assert!(Arc::ptr_eq(&held, &interner.share(7)));
    }
}
