//! Our marks on a custom resource: finalizer, label, inventory.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_core::{
    api::names,
    plan::ChildKey,
    reconcile::{inventory::Inventory, record::CrRecord, step::Failure},
    value::{Key, Map, Node},
};

use super::{bound::Bound, execute::failure, shared::Shared, wire::WireError};

type Cr = Arc<CrRecord>;

/// Sees to finalizer, label and inventory; none when the custom resource is gone.
pub(super) async fn write_metadata(
    shared: &Shared,
    bound: &Bound,
    cr: &Arc<CrRecord>,
    wanted: &Inventory,
) -> Result<Option<Arc<CrRecord>>, Failure> {
    if cr.finalizer == bound.plan.finalizer && cr.managed && cr.inventory == *wanted {
        return Ok(Some(cr.clone()));
    }
    let body = metadata_body(bound, cr, wanted);
    match shared
        .apply_metadata(
            &bound.served,
            &cr.id.key,
            &body,
            &bound.plan.metadata_manager(),
        )
        .await
    {
        Ok(answer) => {
            if wanted.kinds != cr.inventory.kinds {
                shared.rebind.notify_one();
            }
            Ok(bound.crs.store().answer(&answer))
        }
        // The uid that the request names is no more: the custom resource was deleted, perhaps made anew.
        Err(WireError::NotFound(_) | WireError::Conflict { .. }) => Ok(None),
        Err(error) => Err(failure_of_cr(bound, cr, &error)),
    }
}

pub(super) fn failure_of_cr(bound: &Bound, cr: &CrRecord, error: &WireError) -> Failure {
    failure(
        &ChildKey {
            kind: bound.plan.resource.group_kind(),
            object: cr.id.key.clone(),
        },
        error,
    )
}

/// What we own of the custom resource's metadata. With the uid, so that a resource that was just deleted does not come back.
fn metadata_body(bound: &Bound, cr: &CrRecord, inventory: &Inventory) -> Node {
    let mut metadata = vec![
        (Key::from("name"), Node::from(&*cr.id.key.name)),
        (Key::from("uid"), Node::from(&*cr.id.uid)),
        (
            Key::from("labels"),
            Node::object([(names::LABEL_MANAGED, Node::from("true"))]),
        ),
    ];
    if let Some(namespace) = &cr.id.key.namespace {
        metadata.push((Key::from("namespace"), Node::from(&**namespace)));
    }
    if *inventory != Inventory::default() {
        metadata.push((
            Key::from("annotations"),
            Node::object([(names::ANNOTATION_INVENTORY, Node::from(inventory.text()))]),
        ));
    }
    if bound.plan.finalizer {
        metadata.push((
            Key::from("finalizers"),
            Node::List([Node::from(names::FINALIZER)].into()),
        ));
    }
    Node::object([
        ("apiVersion", Node::from(bound.plan.resource.api_version())),
        ("kind", Node::from(&*bound.plan.resource.kind)),
        ("metadata", Node::Map(metadata.into_iter().collect::<Map>())),
    ])
}

/// Writes down what was made once, so that it is not made again when somebody deletes it; takes out what was written down
/// `ahead` and not made.
pub(super) async fn remember_made(
    shared: &Shared,
    bound: &Bound,
    cr: Cr,
    mut inventory: Inventory,
    ahead: &BTreeSet<ChildKey>,
    made: Vec<ChildKey>,
) -> Result<Cr, Failure> {
    let written = inventory.made.clone();
    inventory.made.retain(|key| !ahead.contains(key));
    inventory.made.extend(made);
    if inventory.made == written {
        return Ok(cr);
    }
    let now = write_metadata(shared, bound, &cr, &inventory).await?;
    Ok(now.unwrap_or(cr))
}
