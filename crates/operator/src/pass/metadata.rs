//! Our metadata on a custom resource: finalizer, label, inventory; and the labels and finalizers that the Katalog declares.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_cluster::requests::ClusterError;
use orkestra_engine::reconcile::{
    inventory::Inventory,
    labels::{Labels, are_current},
    record::CrRecord,
    step::Failure,
};
use orkestra_language::api::names;
use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::ChildKey;

use super::{Pass, failure::failure_of_cr};
use crate::shared::bound_plan::BoundPlan;

type Cr = Arc<CrRecord>;

/// The wanted metadata of a custom resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct WantedMetadata {
    pub(crate) inventory: Inventory,
    /// The labels that the Katalog declares.
    pub(crate) labels: Labels,
}

/// Writes finalizers, labels and inventory; `None` if the custom resource is gone or has since been marked for deletion. Only
/// for the record that this returns is the finalizer stored, on that very uid.
pub(crate) async fn write_metadata(
    pass: &Pass<'_>,
    cr: &Arc<CrRecord>,
    wanted: &WantedMetadata,
) -> Result<Option<Arc<CrRecord>>, Failure> {
    let WantedMetadata { inventory, labels } = wanted;
    let others = &pass.bound.plan.other_finalizers;
    // None can be added to an object that is being deleted.
    let has_finalizers = cr.deleting
        || (cr.finalizer == pass.bound.plan.finalizer
            && others.iter().all(|name| cr.other_finalizers.contains(name)));
    if has_finalizers && cr.managed && *cr.inventory == *inventory && are_current(labels, cr) {
        return Ok(Some(cr.clone()));
    }
    let body = metadata_body(pass.bound, cr, wanted);
    match pass
        .apply_metadata(
            pass.bound.served(),
            &cr.id.key,
            &body,
            &pass.bound.plan.metadata_manager(),
        )
        .await
    {
        Ok(answer) => {
            let is_dropped = |kind| pass.bound.knows(kind) && !inventory.kinds.contains(kind);
            if inventory.kinds.iter().any(|kind| !pass.bound.knows(kind))
                || cr.inventory.kinds.iter().any(is_dropped)
            {
                pass.shared.rebind.notify_one();
            }
            // A resource that was deleted or created again meanwhile is handled by another pass.
            let now = pass.bound.crs.store().answer(&answer);
            Ok(now.filter(|now| now.id.uid == cr.id.uid && now.deleting == cr.deleting))
        }
        // The uid that the request names no longer exists: the custom resource was deleted, perhaps created again.
        Err(ClusterError::NotFound(_) | ClusterError::Conflict { .. }) => Ok(None),
        Err(error) => Err(failure_of_cr(pass.bound, cr, &error)),
    }
}

/// The part of the custom resource's metadata that we own. It includes the uid, so that a resource that was just deleted is
/// not created again.
fn metadata_body(bound: &BoundPlan, cr: &CrRecord, wanted: &WantedMetadata) -> Node {
    let WantedMetadata { inventory, labels } = wanted;
    let in_field = |field: &'static str| {
        let of_field = labels.iter().filter(move |(key, _)| key.field() == field);
        of_field.map(|(key, value)| (key.key(), Node::from(&**value)))
    };
    let labels = in_field("labels").chain([(names::LABEL_MANAGED, Node::from("true"))]);
    let listed = (*inventory != Inventory::default()).then(|| {
        (
            names::ANNOTATION_INVENTORY,
            Node::from(inventory.text_on(&cr.id.uid)),
        )
    });
    let annotations: Map = in_field("annotations")
        .chain(listed)
        .map(|(key, value)| (Key::from(key), value))
        .collect();
    let mut metadata = vec![
        (Key::from("name"), Node::from(&*cr.id.key.name)),
        (Key::from("uid"), Node::from(&cr.id.uid)),
        (
            Key::from("labels"),
            Node::Map(labels.map(|(key, value)| (Key::from(key), value)).collect()),
        ),
    ];
    if let Some(namespace) = &cr.id.key.namespace {
        metadata.push((Key::from("namespace"), Node::from(&**namespace)));
    }
    if !annotations.is_empty() {
        metadata.push((Key::from("annotations"), Node::Map(annotations)));
    }
    let others = bound.plan.other_finalizers.iter();
    let others = others.filter(|name| !cr.deleting || cr.other_finalizers.contains(name));
    let ours = bound.plan.finalizer && (cr.finalizer || !cr.deleting);
    let finalizers: Vec<Node> = ours
        .then_some(names::FINALIZER)
        .into_iter()
        .chain(others.map(|name| &**name))
        .map(Node::from)
        .collect();
    if !finalizers.is_empty() {
        metadata.push((Key::from("finalizers"), Node::List(finalizers.into())));
    }
    Node::object([
        ("apiVersion", Node::from(bound.plan.resource.api_version())),
        ("kind", Node::from(&*bound.plan.resource.kind)),
        ("metadata", Node::Map(metadata.into_iter().collect::<Map>())),
    ])
}

/// Records what was created once, so that it is not created again when a user deletes it; removes what was recorded `ahead`
/// and not created.
pub(crate) async fn remember_made(
    pass: &Pass<'_>,
    cr: Cr,
    mut wanted: WantedMetadata,
    ahead: &BTreeSet<ChildKey>,
    made: &[ChildKey],
) -> Result<Cr, Failure> {
    let inventory = &mut wanted.inventory;
    let written = inventory.made.clone();
    inventory.made.retain(|key| !ahead.contains(key));
    inventory.made.extend(made.iter().cloned());
    if inventory.made == written {
        return Ok(cr);
    }
    let now = write_metadata(pass, &cr, &wanted).await?;
    Ok(now.unwrap_or(cr))
}
