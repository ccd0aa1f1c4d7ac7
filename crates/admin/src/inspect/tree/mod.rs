//! An object, and everything below it: the operators of a Katalog and their custom resources, the children of a custom resource,
//! the Pods of a workload.
//!
//! ```text
//!  Katalog ── status.operators ──► operators ── lists ──► custom resources
//!  custom resource ── inventory: kinds ── lists by the owner label ── proof of ownership ──► children ──► behind: Pods
//! ```
//!
//! Children are those that the operator of the kind takes for its own: labels alone prove nothing.

mod behind;
pub(crate) mod katalog;

use std::collections::BTreeSet;

use futures::{StreamExt as _, stream};
use jiff::Timestamp;
use orkestra_cluster::requests::{Cluster, ClusterError, Served};
use orkestra_engine::reconcile::{
    inventory::Inventory,
    record::{ChildRecord, Uid},
};
use orkestra_language::api::names;
use orkestra_object::{
    GroupKind, ObjectKey,
    value::{Node, Path},
};
use serde::Serialize;

use super::{
    Health, ObjectRef, Reader, Unavailable,
    reader::{Objects, Wanted},
};
use crate::operate::Error;

/// The most objects of a tree.
const NODES: usize = 2_000;
/// The most objects of one kind below one object.
const CHILDREN: usize = 500;
/// The most levels: custom resources may be children of others.
const LEVELS: usize = 12;
/// The most concurrent requests.
const SIDE_BY_SIDE: usize = 8;

/// An object and everything below it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tree {
    /// The object.
    pub root: TreeNode,
    /// What could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<Unavailable>,
}

/// An object of a tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeNode {
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// Its health.
    pub health: Health,
    /// What is below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<TreeNode>,
}

impl TreeNode {
    /// Returns the node of an object without anything below it.
    fn of(kind: &Served, object: &Node) -> Self {
        let created = object.meta_text("creationTimestamp");
        Self {
            object: ObjectRef::of(kind, object),
            created: created.and_then(|text| text.parse().ok()),
            health: Health::of(&kind.group_kind(), object),
            children: Vec::new(),
        }
    }

    /// Calls `visit` with each node, this one first, and its depth.
    pub fn walk<'a>(&'a self, visit: &mut dyn FnMut(&'a Self, usize)) {
        fn down<'a>(node: &'a TreeNode, depth: usize, visit: &mut dyn FnMut(&'a TreeNode, usize)) {
            visit(node, depth);
            for child in &node.children {
                down(child, depth + 1, visit);
            }
        }
        down(self, 0, visit);
    }
}

/// Returns the tree of an object.
///
/// # Errors
/// [`Error::Request`] if the object itself cannot be read.
pub async fn tree(reader: &Reader, kind: &Served, key: &ObjectKey) -> Result<Tree, Error> {
    let object = fetch(&reader.cluster, kind, key).await?;
    Ok(tree_of(reader, kind, &object).await)
}

/// Returns the tree of an object that was read.
pub(crate) async fn tree_of(reader: &Reader, kind: &Served, object: &Node) -> Tree {
    let mut walk = Walk::new(reader);
    let root = walk.root(kind, object).await;
    Tree {
        root,
        unavailable: walk.missing.into_iter().collect(),
    }
}

/// Reads the object; a part that cannot be decoded is left out.
pub(crate) async fn fetch(
    cluster: &Cluster,
    kind: &Served,
    key: &ObjectKey,
) -> Result<Node, Error> {
    let read = cluster.in_part().get(kind, key).await;
    read.map_err(|source: ClusterError| Error::Request {
        what: format!("get {}", titled(kind, key)),
        source: Box::new(source),
    })
}

fn titled(kind: &Served, key: &ObjectKey) -> String {
    format!("{} {key}", kind.group_kind())
}

/// What is known while a tree grows.
struct Walk<'r> {
    reader: &'r Reader,
    /// The objects that are in the tree: owners may form a circle.
    seen: BTreeSet<String>,
    missing: BTreeSet<Unavailable>,
}

/// An object whose children are looked for.
struct Parent<'p> {
    kind: &'p Served,
    namespace: Option<&'p str>,
    uid: &'p str,
    /// The text of its inventory annotation.
    inventory: Option<&'p str>,
    /// What `spec.selector` of a workload is read from.
    view: &'p Node,
}

impl<'p> Parent<'p> {
    fn of(kind: &'p Served, object: &'p Node) -> Self {
        Self {
            kind,
            namespace: object.meta_text("namespace"),
            uid: object.meta_text("uid").unwrap_or_default(),
            inventory: object.annotation(names::ANNOTATION_INVENTORY),
            view: object,
        }
    }
}

impl<'r> Walk<'r> {
    fn new(reader: &'r Reader) -> Self {
        Self {
            reader,
            seen: BTreeSet::new(),
            missing: BTreeSet::new(),
        }
    }

    async fn root(&mut self, kind: &Served, object: &Node) -> TreeNode {
        let mut node = TreeNode::of(kind, object);
        self.seen.extend(node.object.uid.clone());
        node.children = if *kind.group == *names::GROUP {
            self.operators(kind, object).await
        } else {
            self.below(&Parent::of(kind, object), 1).await
        };
        node
    }

    /// Returns what is below an object.
    async fn below(&mut self, parent: &Parent<'_>, level: usize) -> Vec<TreeNode> {
        if level > LEVELS {
            let what = "objects on deeper levels".to_owned();
            self.missing.insert(Unavailable::beyond(what, LEVELS));
            return Vec::new();
        }
        let mut nodes = self.children(parent, level).await;
        nodes.extend(self.behind(parent, level).await);
        nodes
    }

    /// True if the object is new and there is room for it.
    fn admits(&mut self, uid: &str) -> bool {
        if self.seen.len() >= NODES {
            let what = "further objects".to_owned();
            self.missing.insert(Unavailable::beyond(what, NODES));
            return false;
        }
        self.seen.insert(uid.to_owned())
    }

    /// Returns the children of a custom resource, by its inventory.
    async fn children(&mut self, parent: &Parent<'_>, level: usize) -> Vec<TreeNode> {
        let Some(inventory) = parent.inventory else {
            return Vec::new();
        };
        let kinds = Inventory::parse(inventory).kinds;
        let served: Vec<&Served> = kinds
            .iter()
            .filter_map(|kind| self.reader.kinds.of(kind))
            .collect();
        let reader = self.reader;
        let lists = served
            .iter()
            .map(|kind| children_of_kind(reader, kind, parent));
        let lists: Vec<_> = stream::iter(lists).buffered(SIDE_BY_SIDE).collect().await;
        let manager = names::field_manager(&parent.kind.plural, &parent.kind.group);
        let owner = Uid::from(parent.uid);
        let mut nodes = Vec::new();
        for (kind, (found, missing)) in served.into_iter().zip(lists) {
            self.missing.extend(missing);
            let group_kind = kind.group_kind();
            let mut items = found.items;
            items.sort_by_cached_key(ObjectKey::of);
            for object in &items {
                if is_child(&group_kind, object, &owner, &manager) {
                    nodes.extend(self.child(kind, object, level).await);
                }
            }
        }
        nodes
    }

    /// Returns a child with everything below it.
    async fn child(&mut self, kind: &Served, object: &Node, level: usize) -> Option<TreeNode> {
        let mut node = TreeNode::of(kind, object);
        if !self.admits(node.object.uid.as_deref()?) {
            return None;
        }
        let parent = Parent::of(kind, object);
        node.children = Box::pin(self.below(&parent, level + 1)).await;
        Some(node)
    }
}

/// Reads the objects of a kind that carry the owner label of a custom resource.
async fn children_of_kind(
    reader: &Reader,
    kind: &Served,
    parent: &Parent<'_>,
) -> (Objects, Vec<Unavailable>) {
    let selector = format!("{}={}", names::LABEL_OWNER_UID, parent.uid);
    let projection = ChildRecord::projection(&child_paths());
    let wanted = Wanted {
        kind,
        selector: Some(&selector),
        fields: None,
        projection: &projection,
        keep: &|_| true,
        most: CHILDREN,
    };
    reader.list_widely(wanted, parent.namespace).await
}

/// The fields that are read of a child beside those of its record.
fn child_paths() -> [Path; 2] {
    let inventory = ["metadata", "annotations", names::ANNOTATION_INVENTORY];
    [
        Path::of_fields(inventory),
        Path::of_fields(["spec", "selector"]),
    ]
}

/// True if the operator that writes as `manager` takes the object for a child of the custom resource with that uid.
fn is_child(kind: &GroupKind, object: &Node, owner: &Uid, manager: &str) -> bool {
    let Ok(record) = ChildRecord::read(kind, object, &[]) else {
        return false;
    };
    // Nothing but the owner reference is concluded from a partly unreadable object.
    let is_unread = record.unread().is_some() && record.controlled;
    record.is_ours(owner, manager) || (is_unread && record.owner() == Some(owner))
}

#[cfg(test)]
mod tests;
