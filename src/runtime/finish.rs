//! The end of a custom resource: children that Kubernetes does not collect go, then our finalizer. No template is read.

use std::time::Duration;

use orkestra_core::{
    api::names,
    plan::ChildKey,
    reconcile::record::{ChildRecord, CrRecord},
    value::{Key, Map, Node},
};

use super::{
    bound::Bound,
    execute::failure,
    pass::{Next, Passed, observe},
    shared::{Request, Shared},
    wire::WireError,
};
use crate::metrics::Verb;

/// How soon the end is tried again where kinds of the inventory cannot be read.
const WAIT: Duration = Duration::from_secs(30);

/// Goes one step towards the end of `cr`, which is being deleted and whose children may still be there.
pub(super) async fn finish(
    shared: &Shared,
    bound: &Bound,
    cr: &std::sync::Arc<CrRecord>,
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
    let mut waiting = false;
    for child in observed
        .children
        .iter()
        .filter(|child| is_uncollected(&child.record, cr, bound))
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
    remove_finalizer(shared, bound, cr).await
}

/// Whether the child is ours and has no owner reference by which Kubernetes would collect it.
fn is_uncollected(record: &ChildRecord, cr: &CrRecord, bound: &Bound) -> bool {
    record.controller.is_none() && record.is_ours(&cr.id.uid, &bound.manager)
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
    let sent = shared
        .wire()
        .delete(&kind.served, &key.object, &record.id.uid)
        .await;
    match shared.heard(Request::Delete, &kind.served, sent) {
        Ok(_) => {
            shared.metrics.wrote(Verb::Delete);
            Ok(false)
        }
        Err(WireError::NotFound { .. } | WireError::Conflict { .. }) => Ok(true),
        Err(error) => Err(failure(key, &error).message),
    }
}

/// Takes our labels off a child that stays.
async fn let_go(shared: &Shared, bound: &Bound, key: &ChildKey) -> Result<bool, String> {
    let Some(kind) = bound.kind(&key.kind) else {
        return Ok(true);
    };
    let labels = [
        names::LABEL_MANAGED,
        names::LABEL_OWNER_UID,
        names::LABEL_KATALOG,
    ]
    .map(|label| (label, Node::Null));
    let body = map([("metadata", map([("labels", map(labels))]))]);
    let sent = shared
        .wire()
        .merge_patch(&kind.served, &key.object, None, &bound.manager, &body)
        .await;
    match shared.heard(Request::Apply, &kind.served, sent) {
        Ok(_) | Err(WireError::NotFound { .. }) => Ok(true),
        Err(error) => Err(failure(key, &error).message),
    }
}

async fn remove_finalizer(shared: &Shared, bound: &Bound, cr: &CrRecord) -> Passed {
    let others = cr
        .other_finalizers
        .iter()
        .map(|name| Node::from(&**name))
        .collect();
    let metadata = [
        ("resourceVersion", Node::from(&*cr.id.resource_version)),
        ("finalizers", Node::List(others)),
    ];
    let body = map([("metadata", map(metadata))]);
    let sent = shared
        .wire()
        .merge_patch(&bound.served, &cr.id.key, None, &bound.manager, &body)
        .await;
    match shared.heard(Request::Apply, &bound.served, sent) {
        Ok(answer) => {
            shared.metrics.wrote(Verb::ApplyMetadata);
            bound.crs.store().answer(&answer);
            Passed::settled()
        }
        Err(WireError::NotFound { .. }) => Passed::settled(),
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

fn map<const N: usize>(fields: [(&str, Node); N]) -> Node {
    Node::Map(
        fields
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect::<Map>(),
    )
}
