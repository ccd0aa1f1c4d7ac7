//! The kinds of configuration that a workload's pods use.

use std::collections::BTreeSet;

use super::{GroupKind, ObjectTree};
use orkestra_object::value::Node;

/// Fields in which a pod names a Secret.
const SECRETS: [&str; 6] = [
    "nodePublishSecretRef",
    "secretKeyRef",
    "secretRef",
    "secretName",
    "imagePullSecrets",
    "secret",
];
/// Fields in which a pod names a `ConfigMap`.
const CONFIG_MAPS: [&str; 3] = ["configMapKeyRef", "configMapRef", "configMap"];

/// Returns the kinds, Secret and `ConfigMap`, that the pods of a workload use. A part rendered by one template may use
/// both.
pub fn kinds(body: &ObjectTree) -> BTreeSet<GroupKind> {
    let mut found = BTreeSet::new();
    check_reference(body, "", &mut found);
    found
}

fn check_reference(tree: &ObjectTree, below: &str, found: &mut BTreeSet<GroupKind>) {
    match tree {
        ObjectTree::Fixed(node) => look_in(node, found),
        ObjectTree::Map(entries) | ObjectTree::Part(entries) => {
            for (key, below) in entries {
                name(key, found);
                check_reference(below, key, found);
            }
        }
        ObjectTree::List(items) | ObjectTree::Joined(items) => items
            .iter()
            .for_each(|item| check_reference(item, below, found)),
        ObjectTree::Leaf(_) if WHOLES.contains(&below) => {
            found.extend([GroupKind::parse("Secret"), GroupKind::parse("ConfigMap")]);
        }
        ObjectTree::Patched(parts) => {
            check_reference(&parts.0, below, found);
            check_reference(&parts.1, below, found);
        }
        ObjectTree::Chosen(chosen) => chosen
            .trees()
            .for_each(|tree| check_reference(tree, below, found)),
        ObjectTree::Leaf(_)
        | ObjectTree::ContainerName(_)
        | ObjectTree::Image(_)
        | ObjectTree::Workload(_)
        | ObjectTree::Owner(_) => {}
    }
}

/// Parts of a pod that use configuration and may be rendered by one template.
const WHOLES: [&str; 11] = [
    "containers",
    "env",
    "envFrom",
    "initContainers",
    "jobTemplate",
    "projected",
    "sources",
    "spec",
    "template",
    "valueFrom",
    "volumes",
];

fn look_in(node: &Node, found: &mut BTreeSet<GroupKind>) {
    match node {
        Node::Map(map) => {
            for (key, below) in map.iter() {
                name(key, found);
                look_in(below, found);
            }
        }
        Node::List(items) => items.iter().for_each(|item| look_in(item, found)),
        _ => {}
    }
}

fn name(key: &str, found: &mut BTreeSet<GroupKind>) {
    if SECRETS.contains(&key) {
        found.insert(GroupKind::parse("Secret"));
    }
    if CONFIG_MAPS.contains(&key) {
        found.insert(GroupKind::parse("ConfigMap"));
    }
}
