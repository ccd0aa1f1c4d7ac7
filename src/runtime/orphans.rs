//! Deletes children without an owner reference whose custom resource was deleted without its finalizer: Kubernetes does not
//! collect them.
//!
//! The API server decides that a custom resource has no finalizers before it deletes it, and a finalizer that is stored in
//! between does not prevent the deletion. So a child may outlive the pass that created it. Its owner annotation names the
//! custom resource:
//!
//! ```text
//!  child event, deleted resource, new watches ── no resource has the uid: note ──► queue: the resource's key
//!     key ─► a resource of that name ─ step ─► declared: adopted when it is applied; else deleted
//!        └─► none, confirmed by the API server ──► deleted
//! ```
//!
//! A uid never returns after deletion, so the API server is asked once for each.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_cluster::wire::{Propagation, WireError};
use orkestra_core::{
    plan::{ChildKey, ObjectKey},
    reconcile::{
        proof::OwnerMark,
        record::{ChildRecord, CrRecord, Identity, ObservedChild, Uid},
        step::Deletion,
        verdict::Executed,
    },
};

use super::{
    bound::Bound,
    execute::delete_child,
    pass::{Next, Passed, next},
    queue::Lane,
    shared::{Shared, lock},
};

/// Uids of custom resources that seem to be deleted and left children, by the custom resource's key.
#[derive(Debug, Default)]
pub(super) struct Orphaned(BTreeMap<ObjectKey, BTreeMap<Uid, Proven>>);

/// Whether the API server confirmed that no custom resource has that uid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Proven(bool);

/// Returns the owner annotation of a child, if it names a custom resource of the operator's kind. Watches also show the
/// children of other operators.
pub(super) fn mark_of<'a>(bound: &Bound, child: &'a ChildRecord) -> Option<&'a OwnerMark> {
    child.mark().filter(|mark| {
        mark.kind == bound.plan.resource.group_kind()
            && mark.key.namespace.is_some() == bound.facts.namespaced
    })
}

impl Shared {
    /// Queues the key of a child's owner if the owner is gone; its pass handles the child.
    pub(super) fn notice_orphan(&self, bound: &Bound, child: &ChildRecord) {
        let Some(mark) = mark_of(bound, child) else {
            return;
        };
        let is_ours = child.is_uncollected(&mark.uid, &bound.manager);
        if !is_ours || child.deleting || self.owner(&mark.uid).is_some() {
            return;
        }
        let mut orphaned = lock(&self.orphaned);
        let uids = orphaned.0.entry(mark.key.clone()).or_default();
        uids.entry(mark.uid.clone()).or_default();
        drop(orphaned);
        self.enqueue(mark.key.clone(), Lane::Changed);
    }

    /// Checks every child that the watches show.
    pub(super) fn notice_orphans(&self, bound: &Bound) {
        for kind in &bound.kinds {
            for child in kind.store().snapshot() {
                self.notice_orphan(bound, &child);
            }
        }
    }

    /// Checks the children of a custom resource that is gone.
    pub(super) fn notice_orphans_of(&self, bound: &Bound, uid: &Uid) {
        for kind in &bound.kinds {
            for (_, child) in kind.store().owned_by(uid) {
                self.notice_orphan(bound, &child);
            }
        }
    }

    fn orphaned(&self, key: &ObjectKey) -> BTreeMap<Uid, Proven> {
        lock(&self.orphaned).0.get(key).cloned().unwrap_or_default()
    }

    fn put_orphaned(&self, key: &ObjectKey, uids: BTreeMap<Uid, Proven>) {
        let mut orphaned = lock(&self.orphaned);
        if uids.is_empty() {
            orphaned.0.remove(key);
        } else {
            orphaned.0.insert(key.clone(), uids);
        }
    }
}

/// Returns the current uid of the custom resource of that key, as the API server has it.
pub(super) async fn live_uid(
    shared: &Shared,
    bound: &Bound,
    key: &ObjectKey,
) -> Result<Option<Uid>, WireError> {
    match shared.get(bound.served(), key).await {
        Ok(object) => Ok(Identity::read(&object).ok().map(|id| id.uid)),
        Err(WireError::NotFound(_) | WireError::NotServed(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the children that deleted custom resources of that name left, sorted by key. The deletion is certain: the API
/// server has `own`, or none.
async fn left(
    shared: &Shared,
    bound: &Bound,
    (key, own): (&ObjectKey, Option<&Uid>),
) -> Result<Vec<ObservedChild>, WireError> {
    let mut uids = shared.orphaned(key);
    uids.retain(|uid, _| Some(uid) != own);
    let mut found = Vec::new();
    uids.retain(|uid, _| {
        let before = found.len();
        found.extend(children_of(bound, key, uid));
        found.len() > before
    });
    if !uids.values().all(|proven| proven.0) {
        let live = live_uid(shared, bound, key).await?;
        if live.as_ref() != own {
            // The record of the custom resource is out of date: its event leads to another pass.
            if let Some(live) = &live {
                uids.remove(live);
            }
            shared.put_orphaned(key, uids);
            return Ok(Vec::new());
        }
        for proven in uids.values_mut() {
            proven.0 = true;
        }
    }
    shared.put_orphaned(key, uids);
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// Returns the children of the custom resource of that name and uid that Kubernetes does not collect.
fn children_of(bound: &Bound, key: &ObjectKey, uid: &Uid) -> Vec<ObservedChild> {
    let owner = OwnerMark {
        kind: bound.plan.resource.group_kind(),
        key: key.clone(),
        uid: uid.clone(),
    };
    let kinds = bound.kinds.iter().flat_map(|kind| {
        let group_kind = kind.served().group_kind();
        let children = kind.store().owned_by(uid).into_iter();
        children.map(move |(object, record)| ObservedChild {
            key: ChildKey {
                kind: group_kind.clone(),
                object,
            },
            record,
        })
    });
    kinds
        .filter(|child| {
            let record = &child.record;
            record.mark() == Some(&owner) && record.is_uncollected(uid, &bound.manager)
        })
        .collect()
}

/// Returns the children that deleted custom resources of the same name left; empty if the API server cannot be asked now.
pub(super) async fn of(shared: &Shared, bound: &Bound, cr: &CrRecord) -> Vec<ObservedChild> {
    let of = (&cr.id.key, Some(&cr.id.uid));
    left(shared, bound, of).await.unwrap_or_else(|error| {
        tracing::debug!(operator = %bound.plan.name, object = %cr.id.key, %error, "cannot read the custom resource");
        Vec::new()
    })
}

/// Deletes the children of a custom resource that no longer exists.
pub(super) async fn clear(shared: &Shared, bound: &Bound, key: &ObjectKey) -> Passed {
    // Without a finalizer, the deletion of children is not guaranteed.
    if !bound.plan.finalizer {
        return Passed::settled();
    }
    let orphans = match left(shared, bound, (key, None)).await {
        Ok(orphans) => orphans,
        Err(error) => return Passed::failed(Next::Retry, error.to_string()),
    };
    let mut deleted = BTreeSet::new();
    for orphan in orphans.iter().filter(|orphan| !orphan.record.deleting) {
        let deletion = Deletion {
            key: orphan.key.clone(),
            uid: orphan.record.id.uid.clone(),
        };
        if let Err(failed) = delete_child(shared, bound, &deletion, Propagation::Background).await {
            let error = format!("{}: {}", failed.at, failed.message);
            let executed = Executed {
                failures: vec![failed],
                ..Executed::default()
            };
            return Passed::failed(next(&executed, None), error);
        }
        deleted.insert(orphan.key.to_string());
    }
    for child in deleted {
        tracing::info!(operator = %bound.plan.name, owner = %key, child, "deleted a child whose custom resource no longer exists");
    }
    Passed::settled()
}
