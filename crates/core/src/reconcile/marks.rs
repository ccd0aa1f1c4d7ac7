//! What makes a rendered object a custom resource's child: name, labels, annotations, owner reference.

use super::record::{Observed, child_mark};
use crate::{
    api::names,
    plan::{ChildKey, ObjectKey, OperatorPlan},
    value::{Key, Map, Node},
};

/// Puts in what makes a rendered object this custom resource's child.
pub(super) fn own(object: &mut Node, key: &ChildKey, plan: &OperatorPlan, observed: &Observed) {
    let cr = &observed.cr.id;
    set_in(object, &["metadata"], "name", Node::from(&*key.object.name));
    if let Some(namespace) = &key.object.namespace {
        set_in(object, &["metadata"], "namespace", Node::from(&**namespace));
    }
    let labels = [
        (names::LABEL_MANAGED, "true".to_owned()),
        (names::LABEL_OWNER_UID, cr.uid.to_string()),
        (
            names::LABEL_KATALOG,
            names::label_value(&format!("{}.{}", plan.katalog.namespace, plan.katalog.name)),
        ),
    ];
    for (label, value) in labels {
        set_in(object, &["metadata", "labels"], label, Node::from(value));
    }
    set_in(
        object,
        &["metadata", "annotations"],
        names::ANNOTATION_CHILD,
        Node::from(child_mark(&key.kind, &key.object.name)),
    );
    if may_reference(&cr.key, &key.object) {
        set_in(
            object,
            &["metadata"],
            "ownerReferences",
            Node::List([owner_reference(plan, observed)].into()),
        );
    }
}

/// Whether an owner reference from `child` to `owner` is legal: it must not leave the owner's namespace.
fn may_reference(owner: &ObjectKey, child: &ObjectKey) -> bool {
    owner.namespace.is_none() || owner.namespace == child.namespace
}

fn owner_reference(plan: &OperatorPlan, observed: &Observed) -> Node {
    let cr = &observed.cr.id;
    let fields = [
        ("apiVersion", Node::from(plan.resource.api_version())),
        ("kind", Node::from(&*plan.resource.kind)),
        ("name", Node::from(&*cr.key.name)),
        ("uid", Node::from(&*cr.uid)),
        ("controller", Node::Bool(true)),
        ("blockOwnerDeletion", Node::Bool(true)),
    ];
    Node::Map(
        fields
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect::<Map>(),
    )
}

/// Sets a field below the maps that `parents` name, making them; field names may hold dots and slashes.
pub(super) fn set_in(object: &mut Node, parents: &[&str], field: &str, value: Node) {
    if !matches!(object, Node::Map(_)) {
        *object = Node::Map(Map::default());
    }
    let Node::Map(map) = object else { return };
    match parents.split_first() {
        None => {
            map.insert(Key::from(field), value);
        }
        Some((parent, rest)) => {
            let mut child = map.remove(parent).unwrap_or_default();
            set_in(&mut child, rest, field, value);
            map.insert(Key::from(*parent), child);
        }
    }
}
