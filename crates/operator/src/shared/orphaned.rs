//! Deleted custom resources that left children which Kubernetes does not collect.

use std::collections::BTreeMap;

use orkestra_cluster::requests::ClusterError;
use orkestra_engine::reconcile::record::{ChildRecord, Identity, OwnerMark, Uid};
use orkestra_plan::{GroupKind, ObjectKey};

use super::{Shared, bound_plan::BoundPlan};
use crate::queue::Lane;

/// Uids of custom resources that seem to be deleted and left children, by the custom resource's key.
#[derive(Debug, Default)]
pub(crate) struct Orphaned(BTreeMap<ObjectKey, BTreeMap<Uid, ProvenDeletions>>);

/// Whether the API server confirmed that no custom resource has that uid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProvenDeletions(pub(crate) bool);

/// Returns the owner annotation of a child, if it names a custom resource of the operator's kind. Watches also show the
/// children of other operators.
pub(crate) fn owner_mark<'a>(bound: &BoundPlan, child: &'a ChildRecord) -> Option<&'a OwnerMark> {
    child.mark().filter(|mark| {
        mark.kind == bound.plan.resource.group_kind()
            && mark.key.namespace.is_some() == bound.crd_status.namespaced
    })
}

impl Shared {
    /// Queues the key of a child's owner if the owner is gone; its pass handles the child.
    pub(crate) fn notice_orphan(&self, bound: &BoundPlan, kind: &GroupKind, child: &ChildRecord) {
        let Some(mark) = owner_mark(bound, child) else {
            return;
        };
        let is_ours =
            child.is_uncollected(&mark.uid, &bound.manager) && bound.may_own(mark, kind, child);
        if !is_ours || child.deleting || self.instances.owner(&mark.uid).is_some() {
            return;
        }
        let mut orphaned = self.orphaned.lock();
        let uids = orphaned.0.entry(mark.key.clone()).or_default();
        uids.entry(mark.uid.clone()).or_default();
        drop(orphaned);
        self.enqueue(mark.key.clone(), Lane::Changed);
    }

    /// Checks every child that the watches show.
    pub(crate) fn notice_orphans(&self, bound: &BoundPlan) {
        for watched in &bound.kinds {
            let kind = watched.served().group_kind();
            for child in watched.store().snapshot() {
                self.notice_orphan(bound, &kind, &child);
            }
        }
    }

    /// Checks the children of a custom resource that is gone.
    pub(crate) fn notice_orphans_of(&self, bound: &BoundPlan, uid: &Uid) {
        for watched in &bound.kinds {
            let kind = watched.served().group_kind();
            for (_, child) in watched.store().owned_by(uid) {
                self.notice_orphan(bound, &kind, &child);
            }
        }
    }

    pub(crate) fn orphaned(&self, key: &ObjectKey) -> BTreeMap<Uid, ProvenDeletions> {
        self.orphaned.lock().0.get(key).cloned().unwrap_or_default()
    }

    pub(crate) fn put_orphaned(&self, key: &ObjectKey, uids: BTreeMap<Uid, ProvenDeletions>) {
        let mut orphaned = self.orphaned.lock();
        if uids.is_empty() {
            orphaned.0.remove(key);
        } else {
            orphaned.0.insert(key.clone(), uids);
        }
    }
}

/// Returns the current uid of the custom resource of that key, as the API server has it.
pub(crate) async fn live_uid(
    shared: &Shared,
    bound: &BoundPlan,
    key: &ObjectKey,
) -> Result<Option<Uid>, ClusterError> {
    match shared.requests.get(bound.served(), key).await {
        Ok(object) => Ok(Identity::read(&object).ok().map(|id| id.uid)),
        Err(ClusterError::NotFound(_) | ClusterError::NotServed(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
