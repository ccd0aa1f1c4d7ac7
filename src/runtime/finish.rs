//! The end of a custom resource: `onDelete`, then children that Kubernetes does not collect go, then our finalizer. Past
//! `onDelete` no template is read.

use std::{sync::Arc, time::Duration};

use orkestra_core::{
    api::names,
    plan::{ChildKey, GroupKind},
    reconcile::record::{ChildRecord, CrRecord},
    value::{Key, Node},
};

use super::{
    bound::Bound,
    end::end,
    execute::failure,
    memory::Memory,
    pass::{Next, Passed, observe},
    shared::Shared,
    wire::{Propagation, Scope, WireError},
};

/// How soon the end is tried again where kinds of the inventory cannot be read.
const WAIT: Duration = Duration::from_secs(30);

/// Goes one step towards the end of `cr`, which is being deleted and whose children may still be there.
pub(super) async fn finish(
    shared: &Shared,
    bound: &Bound,
    cr: &Arc<CrRecord>,
    memory: &mut Memory,
) -> Passed {
    if !cr.finalizer {
        return Passed::settled();
    }
    let observed = observe(bound, cr);
    if !observed.unseen.is_empty() {
        shared.rebind.notify_one();
        let kinds = observed
            .unseen
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ");
        return Passed::failed(
            Next::After(WAIT),
            format!("children of kind {kinds} cannot be read, so they may still be there"),
        );
    }
    // What Kubernetes is asked to orphan is not taken down before.
    if !cr.skips_on_delete
        && !cr.orphans()
        && let Some(passed) = end(shared, bound, &observed, memory).await
    {
        return passed;
    }
    let mut waiting = false;
    for child in observed
        .children
        .iter()
        .filter(|child| child.record.is_uncollected(&cr.id.uid, &bound.manager))
    {
        let result = if cr.orphans() {
            let_go(shared, bound, &child.key).await
        } else {
            delete(shared, bound, &child.key, &child.record).await
        };
        match result {
            Ok(gone) => waiting |= !gone,
            Err(failed) => return Passed::failed(Next::Retry, failed),
        }
    }
    // The deletion of the last child is an event, which wakes this key again.
    if waiting {
        return Passed::settled();
    }
    match is_alone(shared, bound, cr).await {
        Ok(true) => remove_finalizer(shared, bound, cr).await,
        // What the watch has not shown yet, it will.
        Ok(false) => Passed {
            next: Next::Retry,
            error: None,
        },
        Err(failed) => Passed::failed(Next::Retry, failed),
    }
}

/// Whether the API server itself knows of no child that would stay behind: a watch may lag behind the one that told of the
/// deletion, and nobody collects what has no owner reference. It is asked only where there can be such children.
async fn is_alone(shared: &Shared, bound: &Bound, cr: &CrRecord) -> Result<bool, String> {
    // From no namespace owner references reach everywhere; what is orphaned stays.
    if cr.id.key.namespace.is_none() || cr.orphans() {
        return Ok(true);
    }
    let elsewhere = |kind: &GroupKind| {
        let mut declared = bound.plan.children.iter();
        declared.any(|child| child.kind.group_kind() == *kind && child.may_be_elsewhere())
    };
    let scope = Scope {
        selector: Some(format!("{}={}", names::LABEL_OWNER_UID, cr.id.uid)),
        ..Scope::default()
    };
    for kind in &bound.kinds {
        let group_kind = kind.served().group_kind();
        if !elsewhere(&group_kind) {
            continue;
        }
        let found = shared.list(kind.served(), &scope).await;
        let found = found.map_err(|error| format!("{group_kind}: {error}"))?;
        let mut records = found
            .iter()
            .filter_map(|object| ChildRecord::read(&group_kind, object, &[]).ok());
        if records.any(|record| record.is_uncollected(&cr.id.uid, &bound.manager)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Takes our marks off a custom resource that is not looked after any more. Its children stay: those that Kubernetes does
/// not collect with it lose our labels.
pub(super) async fn let_stray_go(shared: &Shared, bound: &Bound, cr: &Arc<CrRecord>) -> Passed {
    for child in &observe(bound, cr).children {
        if child.record.is_uncollected(&cr.id.uid, &bound.manager)
            && let Err(failed) = let_go(shared, bound, &child.key).await
        {
            return Passed::failed(Next::Retry, failed);
        }
    }
    tracing::info!(operator = %bound.plan.name, object = %cr.id.key, "is not looked after any more");
    remove_marks(shared, bound, cr).await
}

/// Whether it is gone already.
async fn delete(
    shared: &Shared,
    bound: &Bound,
    key: &ChildKey,
    record: &ChildRecord,
) -> Result<bool, String> {
    let Some(kind) = bound.kind(&key.kind) else {
        return Ok(true);
    };
    if record.deleting {
        return Ok(false);
    }
    match shared
        .delete(
            kind.served(),
            &key.object,
            &record.id.uid,
            Propagation::Background,
        )
        .await
    {
        Ok(stays) => Ok(stays.is_none()),
        Err(WireError::NotFound(_) | WireError::Conflict { .. }) => Ok(true),
        Err(error) => Err(failure(key, &error).message),
    }
}

/// Takes our labels off a child that stays.
async fn let_go(shared: &Shared, bound: &Bound, key: &ChildKey) -> Result<bool, String> {
    let Some(kind) = bound.kind(&key.kind) else {
        return Ok(true);
    };
    let labels = names::CHILD_LABELS.map(|label| (label, Node::Null));
    let body = Node::object([("metadata", Node::object([("labels", Node::object(labels))]))]);
    match shared
        .patch_metadata(kind.served(), &key.object, &body, &bound.manager)
        .await
    {
        Ok(_) | Err(WireError::NotFound(_)) => Ok(true),
        Err(error) => Err(failure(key, &error).message),
    }
}

/// Takes off what we put on, but for the inventory: it says what was made once, should the resource come back.
async fn remove_marks(shared: &Shared, bound: &Bound, cr: &CrRecord) -> Passed {
    let put = &cr.inventory.labels;
    let labels = put.iter().map(|key| &**key).chain([names::LABEL_MANAGED]);
    let labels = labels.map(|label| (Key::from(label), Node::Null));
    let mut finalizers: Vec<_> = cr.other_finalizers.iter().collect();
    finalizers.retain(|name| !cr.inventory.finalizers.contains(*name));
    let metadata = [
        ("resourceVersion", Node::from(&cr.id.resource_version)),
        ("labels", Node::Map(labels.collect())),
        (
            "finalizers",
            Node::List(finalizers.iter().map(|name| Node::from(&***name)).collect()),
        ),
    ];
    patch_cr(shared, bound, cr, Node::object(metadata)).await
}

async fn remove_finalizer(shared: &Shared, bound: &Bound, cr: &CrRecord) -> Passed {
    let others = cr
        .other_finalizers
        .iter()
        .map(|name| Node::from(&**name))
        .collect();
    let metadata = [
        ("resourceVersion", Node::from(&cr.id.resource_version)),
        ("finalizers", Node::List(others)),
    ];
    patch_cr(shared, bound, cr, Node::object(metadata)).await
}

async fn patch_cr(shared: &Shared, bound: &Bound, cr: &CrRecord, metadata: Node) -> Passed {
    let body = Node::object([("metadata", metadata)]);
    match shared
        .patch_metadata(bound.served(), &cr.id.key, &body, &bound.manager)
        .await
    {
        Ok(answer) => {
            // The answer to a stray must not enter what is looked after.
            if bound.cr(&cr.id.key).is_some() {
                bound.crs.store().answer(&answer);
            }
            Passed::settled()
        }
        Err(WireError::NotFound(_)) => Passed::settled(),
        Err(WireError::Conflict { .. }) => Passed {
            next: Next::Retry,
            error: None,
        },
        Err(error) => {
            let key = ChildKey {
                kind: bound.plan.resource.group_kind(),
                object: cr.id.key.clone(),
            };
            let next = if matches!(error, WireError::Forbidden { .. }) {
                Next::After(WAIT)
            } else {
                Next::Retry
            };
            Passed::failed(next, failure(&key, &error).message)
        }
    }
}
