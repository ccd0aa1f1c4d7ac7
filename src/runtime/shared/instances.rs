//! The custom resources of an operator: their uids, and what it remembers about each between passes.

use std::{collections::HashMap, sync::Mutex};

use orkestra_core::{
    plan::ObjectKey,
    reconcile::{hold_reason::HoldReason, record::Uid},
};

use super::memory::{Memory, PassMemory};
use crate::runtime::lock::lock;

/// The custom resources of one operator.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Instances {
    memories: Mutex<HashMap<ObjectKey, PassMemory>>,
    /// The key of each custom resource by uid, to find a child's owner.
    uids: Mutex<HashMap<Uid, ObjectKey>>,
}

impl Instances {
    /// Takes the memory of a custom resource for a pass: the queue allows no two passes over one key. The part that stays
    /// says whether it is ready, which does not change while a pass only reads.
    pub(in crate::runtime) fn take_memory(&self, key: &ObjectKey) -> Memory {
        let mut memories = lock(&self.memories);
        memories
            .get_mut(key)
            .map(PassMemory::take)
            .unwrap_or_default()
    }

    pub(in crate::runtime) fn put_memory(&self, key: &ObjectKey, memory: Memory) {
        lock(&self.memories).insert(key.clone(), memory.into());
    }

    /// Resets readiness when another plan is in force: custom resources count as ready again after a pass under it.
    pub(in crate::runtime) fn forget_readiness(&self) {
        for memory in lock(&self.memories).values_mut() {
            memory.ready = false;
        }
    }

    /// Returns how many custom resources are ready.
    pub(in crate::runtime) fn ready_count(&self) -> usize {
        lock(&self.memories)
            .values()
            .filter(|memory| memory.ready)
            .count()
    }

    /// Returns how many custom resources `reconcileGate` holds back.
    pub(in crate::runtime) fn gated_count(&self) -> usize {
        let is_gated = |kept: &&PassMemory| kept.held_back == Some(HoldReason::Gated);
        lock(&self.memories).values().filter(is_gated).count()
    }

    /// Returns the key of the custom resource of that uid.
    pub(in crate::runtime) fn owner(&self, uid: &Uid) -> Option<ObjectKey> {
        lock(&self.uids).get(uid).cloned()
    }

    /// Adds a new custom resource.
    pub(in crate::runtime) fn add(&self, uid: &Uid, key: &ObjectKey) {
        lock(&self.uids).insert(uid.clone(), key.clone());
    }

    /// Removes a deleted custom resource.
    pub(super) fn remove(&self, uid: &Uid, key: &ObjectKey) {
        lock(&self.uids).remove(uid);
        lock(&self.memories).remove(key);
    }

    /// Returns how many custom resources there are.
    pub(super) fn count(&self) -> usize {
        lock(&self.uids).len()
    }

    /// Removes all custom resources and returns their keys; what passes remembered stays until [`Instances::forget_all`].
    pub(super) fn drain(&self) -> Vec<ObjectKey> {
        lock(&self.uids).drain().map(|(_, key)| key).collect()
    }

    /// Drops what passes remembered.
    pub(super) fn forget_all(&self) {
        lock(&self.memories).clear();
    }
}
