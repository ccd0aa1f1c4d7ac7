//! Equal parts of records, held once in the process.

use std::{
    hash::{BuildHasher, Hash},
    sync::{Arc, Mutex, PoisonError, Weak},
};

use hashbrown::{DefaultHashBuilder, HashTable};

/// The table is not swept before it holds so many.
const SWEEP_FROM: usize = 64;

/// What is held of one type; dead entries are swept when the table has doubled since the last sweep.
pub(super) struct Interner<T>(Mutex<Option<Table<T>>>);

struct Table<T> {
    hasher: DefaultHashBuilder,
    /// With the hash of each: of what is gone it could not be told again.
    held: HashTable<(u64, Weak<T>)>,
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
            hasher: DefaultHashBuilder::default(),
            held: HashTable::new(),
            sweep_at: SWEEP_FROM,
        });
        table.share(value)
    }
}

impl<T: Hash + Eq> Table<T> {
    fn share(&mut self, value: T) -> Arc<T> {
        let hash = self.hasher.hash_one(&value);
        let mut known = None;
        self.held.find(hash, |(_, weak)| {
            known = weak.upgrade().filter(|known| **known == value);
            known.is_some()
        });
        if let Some(known) = known {
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
        let table = interner.0.lock().unwrap();
        let known = table.as_ref().unwrap().held.len();
        assert!(known <= SWEEP_FROM, "{known}");
        drop(table);
        assert!(Arc::ptr_eq(&held, &interner.share(7)));
    }
}
