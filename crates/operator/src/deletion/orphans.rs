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
//!        └─► none, confirmed by the API server ──► deleted, unless it was restored from a backup
//! ```
//!
//! A uid never returns after deletion, so the API server is asked once for each.

use std::collections::BTreeSet;

use orkestra_cluster::requests::{ClusterError, Propagation};
use orkestra_engine::reconcile::{
    record::{CrRecord, ObservedChild, Uid},
    step::Deletion,
};
use orkestra_language::reasons::Reason;
use orkestra_plan::{ChildKey, ObjectKey};

use crate::{
    pass::{Pass, Passed, execute::delete_child},
    shared::{bound_plan::BoundPlan, orphaned::live_uid},
};

/// Returns the children that deleted custom resources of that name left, sorted by key. The deletion is certain: the API
/// server has `own`, or none.
async fn leftover_children(
    pass: &Pass<'_>,
    (key, own): (&ObjectKey, Option<&Uid>),
) -> Result<Vec<ObservedChild>, ClusterError> {
    let mut uids = pass.shared.orphaned(key);
    uids.retain(|uid, _| Some(uid) != own);
    let mut found = Vec::new();
    uids.retain(|uid, _| {
        let before = found.len();
        found.extend(children_of(pass.bound, key, uid));
        found.len() > before
    });
    if !uids.values().all(|proven| proven.0) {
        let live = live_uid(pass.shared, pass.bound, key).await?;
        if live.as_ref() != own {
            // The record of the custom resource is out of date: its event leads to another pass.
            if let Some(live) = &live {
                uids.remove(live);
            }
            pass.shared.put_orphaned(key, uids);
            return Ok(Vec::new());
        }
        for proven in uids.values_mut() {
            proven.0 = true;
        }
    }
    pass.shared.put_orphaned(key, uids);
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// Returns the children of the custom resource of that name and uid that Kubernetes does not collect.
fn children_of(bound: &BoundPlan, key: &ObjectKey, uid: &Uid) -> Vec<ObservedChild> {
    let owner = bound.owner_mark_of(key, uid);
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
            record.mark() == Some(&owner)
                && record.is_uncollected(uid, &bound.manager)
                && bound.may_own(&owner, &child.key.kind, record)
        })
        .collect()
}

/// Returns the children that deleted custom resources of the same name left; empty if the API server cannot be asked now.
pub(crate) async fn of(pass: &Pass<'_>, cr: &CrRecord) -> Vec<ObservedChild> {
    let of = (&cr.id.key, Some(&cr.id.uid));
    leftover_children(pass, of).await.unwrap_or_else(|error| {
        tracing::debug!(operator = %pass.bound.plan.name, object = %cr.id.key, %error, "cannot read the custom resource");
        Vec::new()
    })
}

/// Deletes the children of a custom resource that no longer exists.
pub(crate) async fn clear(pass: &Pass<'_>) -> Passed {
    let key = pass.key;
    // Without a finalizer, the deletion of children is not guaranteed.
    if !pass.bound.plan.finalizer {
        return Passed::settled();
    }
    let orphans = match leftover_children(pass, (key, None)).await {
        Ok(orphans) => orphans,
        Err(error) => return Passed::failed(Reason::Unavailable, error.to_string()),
    };
    let mut deleted = BTreeSet::new();
    // Restored children stay: their custom resource may be restored after them.
    let is_left = |orphan: &&ObservedChild| !orphan.record.deleting && !orphan.record.is_restored();
    for orphan in orphans.iter().filter(is_left) {
        let deletion = Deletion {
            key: orphan.key.clone(),
            uid: orphan.record.id.uid.clone(),
        };
        if let Err(failed) = delete_child(pass, &deletion, Propagation::Background).await {
            let error = format!("{}: {}", failed.at, failed.message);
            return Passed::failed(failed.reason, error);
        }
        deleted.insert(orphan.key.to_string());
    }
    for child in deleted {
        tracing::info!(operator = %pass.bound.plan.name, owner = %key, child, "deleted a child whose custom resource no longer exists");
    }
    Passed::settled()
}
