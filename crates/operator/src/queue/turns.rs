//! The keys that wait in one lane: their groups take turns, and within a group the first in is the first out.

use std::{collections::BTreeMap, hash::Hash, ops::Bound};

use orkestra_object::value::Key;
use orkestra_plan::ObjectKey;

/// A key of a queue.
pub trait QueueKey: Clone + Eq + Hash {
    /// Part of a key by which keys take turns: however many keys of one group wait, a key of another group waits for one of
    /// them at most.
    type Group: Clone + Ord + Send + Sync;

    /// Returns its group.
    fn group(&self) -> &Self::Group;
}

/// Namespaces take turns; cluster-scoped objects are one group.
impl QueueKey for ObjectKey {
    type Group = Option<Key>;

    fn group(&self) -> &Self::Group {
        &self.namespace
    }
}

/// The waiting keys of a lane. The turn passes through the groups in their order, so only the last one needs to be kept.
pub(crate) struct WaitingKeys<K: QueueKey> {
    keys: BTreeMap<(K::Group, u64), K>,
    /// The group that had the last turn.
    last: Option<K::Group>,
}

impl<K: QueueKey> Default for WaitingKeys<K> {
    fn default() -> Self {
        Self {
            keys: BTreeMap::new(),
            last: None,
        }
    }
}

impl<K: QueueKey> WaitingKeys<K> {
    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn insert(&mut self, ticket: u64, key: K) {
        self.keys.insert((key.group().clone(), ticket), key);
    }

    pub(crate) fn remove(&mut self, ticket: u64, key: &K) -> Option<K> {
        self.keys.remove(&(key.group().clone(), ticket))
    }

    /// Removes the first key of the group whose turn it is. The turn does not pass on before [`Self::end_turn`].
    pub(crate) fn pop_next(&mut self) -> Option<K> {
        let first = self.first_after(self.last.as_ref());
        let (place, _) = first.or_else(|| self.keys.first_key_value())?;
        let place = place.clone();
        self.keys.remove(&place)
    }

    /// Passes the turn on to the group behind this one.
    pub(crate) fn end_turn(&mut self, group: &K::Group) {
        self.last = Some(group.clone());
    }

    /// Returns the first key of each group.
    pub(crate) fn firsts(&self) -> impl Iterator<Item = &K> {
        let first = self.keys.first_key_value();
        let firsts = std::iter::successors(first, |((group, _), _)| self.first_after(Some(group)));
        firsts.map(|(_, key)| key)
    }

    /// Returns the first key of the next group with waiting keys.
    fn first_after(&self, group: Option<&K::Group>) -> Option<(&(K::Group, u64), &K)> {
        let after = group.map_or(Bound::Unbounded, |group| {
            Bound::Excluded((group.clone(), u64::MAX))
        });
        self.keys.range((after, Bound::Unbounded)).next()
    }
}
