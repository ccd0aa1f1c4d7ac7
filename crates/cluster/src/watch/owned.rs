//! Records by owner: a table of pointers to the records, so that it costs one pointer for each.

use std::{hash::BuildHasher, sync::Arc};

use hashbrown::{DefaultHashBuilder, HashTable};
use orkestra_object::Uid;

use super::Record;

/// The records that have an owner.
pub(crate) struct Owned<R> {
    /// By the hash of the owner's uid: the records of one owner share it.
    table: HashTable<Arc<R>>,
    state: DefaultHashBuilder,
}

impl<R: Record> Owned<R> {
    /// Bytes per entry: the pointer, and one byte of its hash.
    pub(crate) const BYTES: usize = size_of::<Arc<R>>() + 1;

    pub(crate) fn new() -> Self {
        Self {
            table: HashTable::new(),
            state: DefaultHashBuilder::default(),
        }
    }

    /// Inserts a record that is not in the table; does nothing for a record without an owner.
    pub(crate) fn insert(&mut self, record: &Arc<R>) {
        let Some(owner) = record.owner() else { return };
        let hash = self.state.hash_one(owner);
        self.table
            .insert_unique(hash, record.clone(), hash_by(&self.state));
    }

    /// Removes this record, compared by pointer.
    pub(crate) fn remove(&mut self, record: &Arc<R>) {
        let Some(owner) = record.owner() else { return };
        let hash = self.state.hash_one(owner);
        if let Ok(entry) = self
            .table
            .find_entry(hash, |known| Arc::ptr_eq(known, record))
        {
            entry.remove();
        }
    }

    /// Returns the records of one owner, sorted by key.
    pub(crate) fn of(&self, uid: &Uid) -> Vec<Arc<R>> {
        let same_hash = self.table.iter_hash(self.state.hash_one(uid));
        let mut of_owner: Vec<_> = same_hash
            .filter(|record| record.owner() == Some(uid))
            .cloned()
            .collect();
        of_owner.sort_unstable_by(|a, b| a.identity().key.cmp(&b.identity().key));
        of_owner
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.table.shrink_to_fit(hash_by(&self.state));
    }
}

/// The hash of a record in the table, when the table is resized.
fn hash_by<R: Record>(state: &DefaultHashBuilder) -> impl Fn(&Arc<R>) -> u64 {
    |record| record.owner().map_or(0, |owner| state.hash_one(owner))
}
