//! The custom resources of an operator: their uids, and what it remembers about each between passes.

use std::collections::{BTreeMap, HashMap};

use orkestra_core::{
    plan::ObjectKey,
    reconcile::{hold_reason::HoldReason, record::Uid},
    value::Key,
};
use parking_lot::Mutex;

use super::memory::{Memory, PassMemory};

/// The custom resources of one operator.
#[derive(Debug, Default)]
pub(in crate::runtime) struct OperatorInstances {
    memories: Mutex<HashMap<ObjectKey, PassMemory>>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// The key of each custom resource by uid, to find a child's owner.
    uids: HashMap<Uid, ObjectKey>,
    /// How many custom resources each namespace has, so that no pass counts them.
    namespaces: BTreeMap<Option<Key>, usize>,
}

impl OperatorInstances {
    /// Takes the memory of a custom resource for a pass: the queue allows no two passes over one key. The part that stays
    /// says whether it is ready, which does not change while a pass only reads.
    pub(in crate::runtime) fn take_memory(&self, key: &ObjectKey) -> Memory {
        let mut memories = self.memories.lock();
        memories
            .get_mut(key)
            .map(PassMemory::take)
            .unwrap_or_default()
    }

    pub(in crate::runtime) fn put_memory(&self, key: &ObjectKey, memory: Memory) {
        self.memories.lock().insert(key.clone(), memory.into());
    }

    /// Resets readiness when another plan is in force: custom resources count as ready again after a pass under it.
    pub(in crate::runtime) fn forget_readiness(&self) {
        for memory in self.memories.lock().values_mut() {
            memory.ready = false;
        }
    }

    /// Returns how many custom resources are ready.
    pub(in crate::runtime) fn ready_count(&self) -> usize {
        self.memories
            .lock()
            .values()
            .filter(|memory| memory.ready)
            .count()
    }

    /// Returns how many custom resources `reconcileGate` holds back.
    pub(in crate::runtime) fn gated_count(&self) -> usize {
        let is_gated = |kept: &&PassMemory| kept.held_back == Some(HoldReason::Gated);
        self.memories.lock().values().filter(is_gated).count()
    }

    /// Returns the key of the custom resource of that uid.
    pub(in crate::runtime) fn owner(&self, uid: &Uid) -> Option<ObjectKey> {
        self.known.lock().uids.get(uid).cloned()
    }

    /// Adds a new custom resource.
    pub(in crate::runtime) fn add(&self, uid: &Uid, key: &ObjectKey) {
        let mut known = self.known.lock();
        if known.uids.insert(uid.clone(), key.clone()).is_none() {
            *known.namespaces.entry(key.namespace.clone()).or_default() += 1;
        }
    }

    /// Removes a deleted custom resource.
    pub(super) fn remove(&self, uid: &Uid, key: &ObjectKey) {
        self.known.lock().remove(uid);
        self.memories.lock().remove(key);
    }

    /// Returns how many custom resources there are.
    pub(super) fn count(&self) -> usize {
        self.known.lock().uids.len()
    }

    /// Returns how many namespaces have custom resources; cluster-scoped ones count as one.
    pub(super) fn namespace_count(&self) -> usize {
        self.known.lock().namespaces.len()
    }

    /// Removes all custom resources and returns their keys; what passes remembered stays until [`OperatorInstances::forget_all`].
    pub(super) fn drain(&self) -> Vec<ObjectKey> {
        let known = std::mem::take(&mut *self.known.lock());
        known.uids.into_values().collect()
    }

    /// Drops what passes remembered.
    pub(super) fn forget_all(&self) {
        self.memories.lock().clear();
    }
}

impl Known {
    fn remove(&mut self, uid: &Uid) {
        let Some(key) = self.uids.remove(uid) else {
            return;
        };
        if let Some(count) = self.namespaces.get_mut(&key.namespace) {
            *count -= 1;
            if *count == 0 {
                self.namespaces.remove(&key.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_are_counted_while_they_have_custom_resources() {
        let instances = OperatorInstances::default();
        let one = |uid: &str, namespace: &str| {
            let key = ObjectKey {
                namespace: Some(namespace.into()),
                name: uid.into(),
            };
            (Uid::from(uid), key)
        };
        let all = [one("a", "east"), one("b", "east"), one("c", "west")];
        for (uid, key) in all.iter().chain(&all) {
            instances.add(uid, key);
        }
        assert_eq!((instances.count(), instances.namespace_count()), (3, 2));
        let counts = all.each_ref().map(|(uid, key)| {
            instances.remove(uid, key);
            instances.remove(uid, key);
            instances.namespace_count()
        });
        assert_eq!(counts, [2, 1, 0]);
        instances.add(&all[0].0, &all[0].1);
        instances.drain();
        assert_eq!((instances.count(), instances.namespace_count()), (0, 0));
    }
}
