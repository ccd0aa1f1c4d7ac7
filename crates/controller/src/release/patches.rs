//! The patches that take our marks off an object, from its metadata.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use orkestra_engine::reconcile::{
    inventory::DeclaredKinds,
    record::{OwnerMark, TRACKING, child_mark},
};
use orkestra_language::api::{OperatedKind, names};
use orkestra_plan::{GroupKind, MetadataKey};
use serde_json::{Value, json};

use super::{annotation, group_kind, inventory, label};

/// The patch that takes our marks off a custom resource, the label `managed` among them; none when it has none.
pub(crate) fn unmark(
    meta: &ObjectMeta,
    declared: &DeclaredKinds,
    managed: Option<&str>,
) -> Option<Value> {
    let finalizers = meta.finalizers.as_deref().unwrap_or_default();
    let finalizer = finalizers.iter().any(|name| name == names::FINALIZER);
    let labelled = managed.is_some_and(|name| label(meta, name).is_some());
    let listed = annotation(meta, names::ANNOTATION_INVENTORY).is_some();
    if !(finalizer || labelled || listed) {
        return None;
    }
    let mut changed = json!({ "uid": meta.uid, "resourceVersion": meta.resource_version });
    // The inventory says which labels, and which finalizers of other controllers, we added.
    let put = inventory(meta, declared);
    let stays =
        |name: &&String| *name != names::FINALIZER && !put.finalizers.contains(name.as_str());
    let kept: Vec<&String> = finalizers.iter().filter(stays).collect();
    if kept.len() != finalizers.len() {
        changed["finalizers"] = json!(kept);
    }
    let in_field = |field: &'static str| {
        let of_field = put.labels.iter().filter(move |key| key.field() == field);
        of_field.map(MetadataKey::key)
    };
    let labels: BTreeMap<&str, Value> = in_field("labels")
        .chain(managed)
        .filter(|key| label(meta, key).is_some())
        .map(|key| (key, Value::Null))
        .collect();
    if !labels.is_empty() {
        changed["labels"] = json!(labels);
    }
    let annotations: BTreeMap<&str, Value> = in_field("annotations")
        .chain([names::ANNOTATION_INVENTORY])
        .filter(|key| annotation(meta, key).is_some())
        .map(|key| (key, Value::Null))
        .collect();
    if !annotations.is_empty() {
        changed["annotations"] = json!(annotations);
    }
    Some(json!({ "metadata": changed }))
}

/// Returns the patch that sets an owner reference to `parent` on a child of `kind` that has none because it keeps values; none for
/// other children. Without our finalizer on the parent, nothing else deletes it.
pub(crate) fn hand_over(
    (owner, parent): (&OperatedKind, &ObjectMeta),
    kind: &GroupKind,
    meta: &ObjectMeta,
) -> Option<Value> {
    let mark = OwnerMark::parse(annotation(meta, names::ANNOTATION_OWNER)?)?;
    let is_legal = parent.namespace.is_none() || parent.namespace == meta.namespace;
    let is_parents = mark.kind == group_kind(owner)
        && parent.uid.as_deref() == Some(&*mark.uid.to_string())
        && parent.name.as_deref() == Some(&*mark.key.name)
        && parent.namespace.as_deref() == mark.key.namespace.as_deref();
    let is_tracked = TRACKING.iter().any(|[map, name]| match *map {
        "labels" => label(meta, name).is_some(),
        _ => annotation(meta, name).is_some(),
    });
    let stays_unowned = is_tracked || annotation(meta, names::ANNOTATION_ADOPTED).is_some();
    if !is_legal || !is_parents || stays_unowned {
        return None;
    }
    disown(kind, meta)?;
    let mut references = json!(meta.owner_references.as_deref().unwrap_or_default());
    references.as_array_mut()?.push(json!({
        "apiVersion": api_version(owner), "kind": owner.kind, "name": parent.name, "uid": parent.uid, "controller": true,
        "blockOwnerDeletion": true,
    }));
    Some(json!({ "metadata": {
        "uid": meta.uid, "resourceVersion": meta.resource_version, "ownerReferences": references,
        "annotations": { names::ANNOTATION_OWNER: null },
    } }))
}

fn api_version(kind: &OperatedKind) -> String {
    let OperatedKind { group, version, .. } = kind;
    if group.is_empty() {
        version.clone()
    } else {
        format!("{group}/{version}")
    }
}

/// Returns the patch that removes our labels from a child of `kind`; none if a controller owns it, or it is a copy.
pub(crate) fn disown(kind: &GroupKind, meta: &ObjectMeta) -> Option<Value> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let mark = child_mark(kind, meta.name.as_deref().unwrap_or_default());
    let copied = annotation(meta, names::ANNOTATION_CHILD) != Some(&mark);
    if copied || owners.iter().any(|owner| owner.controller == Some(true)) {
        return None;
    }
    let labels: BTreeMap<_, _> = names::CHILD_LABELS
        .into_iter()
        .filter(|name| label(meta, name).is_some())
        .map(|name| (name, Value::Null))
        .collect();
    (!labels.is_empty()).then(|| json!({ "metadata": { "uid": meta.uid, "resourceVersion": meta.resource_version, "labels": labels } }))
}
