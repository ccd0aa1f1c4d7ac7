//! Decides from field ownership, never from values, which rendered objects need a write.
//!
//! The API server keeps the operator's Apply entry in `managedFields` exact: it removes a path if a client changes the value, and
//! keeps it if a client writes an equal value. So an object needs no write if its `applied` annotation names the current rendering
//! and the entry covers every rendered leaf. This holds for any defaulting or normalization by the API server.
//!
//! Several field managers may apply a leaf as long as their values are equal. If the operator's value changes, the API server
//! refuses the apply and names the leaf: from then on it belongs to the other manager.

use super::{
    owned::{OwnValues, PathElement, trail_path},
    record::ChildRecord,
    refused,
};
use orkestra_language::api::names;
use orkestra_object::value::{Key, Map, Node, Path, PathStep};

/// A field that another manager holds by apply: that manager owns it until it releases it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldField {
    /// The field, from the object's root.
    pub path: Path,
    /// The manager that holds it.
    pub manager: String,
}

/// The action needed for one rendered object that exists and is ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Whether the object was rendered from other input than the last applied one.
    pub changed: bool,
    /// Leaves that another client changed by update, or removed: drift.
    pub drift: Vec<Path>,
    /// Leaves that another manager holds by apply.
    pub held: Vec<HeldField>,
}

impl Difference {
    /// True if the object needs a write.
    pub fn needs_write(&self) -> bool {
        self.changed || !self.drift.is_empty()
    }
}

/// The wanted state of an object.
#[derive(Clone, Copy, Debug)]
pub struct DesiredObject<'a> {
    /// The rendered object.
    pub object: &'a Node,
    /// The hash of the input that it was rendered from.
    pub hash: &'a str,
    /// `forceConflict`: fields that others hold by apply count as drift.
    pub take_held: bool,
    /// See [`orkestra_plan::ChildPlan::whole_lists`].
    pub whole_lists: &'a [Path],
}

/// Compares a rendered object with the field ownership of the live object.
///
/// `refused` are the fields, in the server's notation, that it named when it refused the rendered object: those that another
/// manager applies belong to that manager, even if we applied the same value until now.
pub fn difference(
    wanted: &DesiredObject<'_>,
    record: &ChildRecord,
    manager: &str,
    refused: &[String],
) -> Difference {
    let own = OwnValues {
        name: &record.id.key.name,
        owner: record.owner(),
    };
    let ours = record.ownership.applied_by(manager);
    let mut difference = Difference {
        changed: !record.has_applied(wanted.hash),
        drift: Vec::new(),
        held: Vec::new(),
    };
    let mut trail = Vec::with_capacity(12);
    each_leaf(wanted.object, &mut trail, &mut |trail, leaf| {
        let is_refused = || {
            refused
                .iter()
                .any(|field| refused::names(field, trail, own))
        };
        let is_covered = ours.is_some_and(|fields| fields.covers(trail, own));
        if is_identity(trail) || (is_covered && !is_refused()) {
            return;
        }
        match record.ownership.applied_by_other(manager, trail, own) {
            Some(other) if !wanted.take_held && !is_mark(trail) => {
                difference.held.push(HeldField {
                    path: trail_path(trail),
                    manager: other.to_owned(),
                });
            }
            // While it is empty, a list that is owned by item is in no manager's fields.
            None if is_empty_list(leaf) && !is_owned_whole(trail, wanted.whole_lists) => {}
            _ => difference.drift.push(trail_path(trail)),
        }
    });
    difference
}

/// `apiVersion`, `kind` and the name are in no manager's fields.
fn is_identity(trail: &[PathElement<'_>]) -> bool {
    match trail {
        [PathElement::Field(root)] => matches!(&***root, "apiVersion" | "kind"),
        [PathElement::Field(root), PathElement::Field(field)] => {
            &***root == "metadata" && matches!(&***field, "name" | "namespace")
        }
        _ => false,
    }
}

/// Labels and annotations of our own domain are ours, even if another client applies an exported object with them: without
/// them it is unknown what was applied.
fn is_mark(trail: &[PathElement<'_>]) -> bool {
    matches!(trail, [.., PathElement::Field(map), PathElement::Field(name)]
        if matches!(&***map, "annotations" | "labels") && name.starts_with(names::PREFIX))
}

fn is_empty_list(node: &Node) -> bool {
    node.as_list().is_some_and(<[Node]>::is_empty)
}

/// True if it leads to one of these lists, or into one: their paths are without indexes.
fn is_owned_whole(trail: &[PathElement<'_>], lists: &[Path]) -> bool {
    let fields = trail.iter().filter_map(|step| match step {
        PathElement::Field(key) => Some(*key),
        PathElement::Item(..) => None,
    });
    lists.iter().any(|list| {
        let mut fields = fields.clone();
        let mut steps = list.steps().iter();
        steps.all(|step| matches!((step, fields.next()), (PathStep::Field(key), Some(field)) if key == field))
    })
}

/// Calls `visit` with the path of each leaf and the leaf. A null is not a leaf: no client can remove it. An empty map
/// (`emptyDir: {}`) and an empty list are leaves: their paths may be owned.
fn each_leaf<'a>(
    node: &'a Node,
    trail: &mut Vec<PathElement<'a>>,
    visit: &mut impl FnMut(&[PathElement<'a>], &Node),
) {
    match node {
        Node::Null => {}
        Node::Map(map) if !map.is_empty() => {
            for (key, child) in map.iter() {
                trail.push(PathElement::Field(key));
                each_leaf(child, trail, visit);
                trail.pop();
            }
        }
        Node::List(list) if !list.is_empty() => {
            for (index, child) in list.iter().enumerate() {
                trail.push(PathElement::Item(index, child));
                each_leaf(child, trail, visit);
                trail.pop();
            }
        }
        _ => visit(trail, node),
    }
}

/// Returns `rendered` without the leaves at `paths`, and without maps that become empty.
pub fn without(rendered: &Node, paths: &[Path]) -> Node {
    if paths.is_empty() {
        return rendered.clone();
    }
    prune(rendered, &Path::default(), paths).unwrap_or_default()
}

fn prune(node: &Node, at: &Path, paths: &[Path]) -> Option<Node> {
    if paths.contains(at) {
        return None;
    }
    if !paths.iter().any(|path| path.starts_with(at)) {
        return Some(node.clone());
    }
    match node {
        Node::Map(map) => {
            let kept: Map = map
                .iter()
                .filter_map(|(key, child)| {
                    let mut path = at.clone();
                    path.push_field(key.clone());
                    Some((Key::clone(key), prune(child, &path, paths)?))
                })
                .collect();
            (!kept.is_empty()).then_some(Node::Map(kept))
        }
        Node::List(list) => {
            let kept: Vec<Node> = list
                .iter()
                .enumerate()
                .filter_map(|(index, child)| {
                    let mut path = at.clone();
                    path.push_index(index);
                    prune(child, &path, paths)
                })
                .collect();
            (!kept.is_empty()).then(|| Node::List(kept.into()))
        }
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests;
