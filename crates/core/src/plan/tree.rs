//! Objects with expressions at the leaves.

use super::{Coerce, GroupKind, PlanPlace};
use crate::{
    template::Template,
    value::{Key, Node},
};

/// A compiled string or scalar at a leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// The expression, or a literal.
    pub template: Template,
    /// The type of the field.
    pub coerce: Coerce,
    /// Its path in the Katalog, for messages: `spec.crds.website.operatorBox.onCreate.deployments[0].replicas`.
    pub path: PlanPlace,
}

/// The values of all profiles in one place, and the choice between them.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// The name of the profile, ignoring case.
    pub name: Leaf,
    /// The values by profile name in lower case; a profile may have none.
    pub options: Box<[(Box<str>, Option<ObjectTree>)]>,
}

/// An object, or a part of one, with expressions at its leaves.
#[derive(Clone, Debug)]
pub enum ObjectTree {
    /// A value without expressions.
    Fixed(Node),
    /// One rendered value.
    Leaf(Leaf),
    /// A map with fixed keys; a value that is left out removes its key. The map itself stays, even if empty.
    Map(Box<[(Key, ObjectTree)]>),
    /// A map that is left out if the value of its first key is: a port without a number.
    Part(Box<[(Key, ObjectTree)]>),
    /// A list; values that are left out are removed, and an empty list is left out.
    List(Box<[ObjectTree]>),
    /// The name of the container of `image` in the workload with this name: `plan::container_name`.
    ContainerName(Leaf),
    /// An image, and its tag if it has none: `plan::tagged_image`.
    Image(Box<(Leaf, Leaf)>),
    /// The value of a profile that each custom resource chooses.
    Chosen(Box<Chosen>),
    /// An object, and the patch merged into it.
    Patched(Box<(ObjectTree, ObjectTree)>),
    /// The value of [`crate::api::names::LABEL_WORKLOAD`] for the workload of this kind and rendered name.
    Workload(Box<(GroupKind, Leaf)>),
    /// A part of the custom resource as the value of a label.
    Owner(OwnerPart),
}

/// The part of a custom resource in the value of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerPart {
    /// Its kind in lower case.
    Kind,
    /// Its name.
    Name,
}

impl ObjectTree {
    /// True if the tree has a value other than `false` at the path, or a template that may render one: what a template gives
    /// is up to the author of a custom resource. `*` is any item or key.
    pub(crate) fn may_have(&self, path: &[&str]) -> bool {
        match (self, path.split_first()) {
            (Self::Fixed(node), _) => has(node, path),
            // What a template renders may be a map.
            (_, None) | (Self::Leaf(_), _) => true,
            (Self::Map(entries) | Self::Part(entries), Some((step, rest))) => entries
                .iter()
                .any(|(key, below)| (*step == "*" || **key == **step) && below.may_have(rest)),
            (Self::List(items), Some((step, rest))) => {
                *step == "*" && items.iter().any(|item| item.may_have(rest))
            }
            (Self::Patched(parts), _) => parts.0.may_have(path) || parts.1.may_have(path),
            (Self::Chosen(chosen), _) => chosen.trees().any(|tree| tree.may_have(path)),
            (
                Self::ContainerName(_) | Self::Image(_) | Self::Workload(_) | Self::Owner(_),
                Some(_),
            ) => false,
        }
    }

    /// Calls `visit` with every leaf, in order.
    pub fn visit<'a>(&'a self, visit: &mut dyn FnMut(&'a Leaf)) {
        match self {
            Self::Fixed(_) | Self::Owner(_) => {}
            Self::Leaf(leaf) | Self::ContainerName(leaf) => visit(leaf),
            Self::Workload(workload) => visit(&workload.1),
            Self::Image(parts) => [&parts.0, &parts.1].into_iter().for_each(visit),
            Self::Patched(parts) => {
                parts.0.visit(visit);
                parts.1.visit(visit);
            }
            Self::Chosen(chosen) => {
                visit(&chosen.name);
                chosen.trees().for_each(|tree| tree.visit(visit));
            }
            Self::Map(entries) | Self::Part(entries) => {
                for (_, below) in entries {
                    below.visit(visit);
                }
            }
            Self::List(items) => items.iter().for_each(|item| item.visit(visit)),
        }
    }

    /// Returns fixed text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Fixed(Node::from(text))
    }

    /// Returns a list of fixed texts.
    pub(crate) fn texts(texts: &[&str]) -> Self {
        let texts: Vec<Node> = texts.iter().map(|text| Node::from(*text)).collect();
        Self::Fixed(Node::from(texts))
    }

    /// Returns a list; fixed if all items are.
    pub(crate) fn list(items: Vec<Self>) -> Self {
        if items.iter().all(|item| matches!(item, Self::Fixed(_))) {
            return Self::Fixed(Node::from(
                items
                    .into_iter()
                    .filter_map(Self::into_fixed)
                    .collect::<Vec<_>>(),
            ));
        }
        Self::List(items.into())
    }

    pub(crate) fn into_fixed(self) -> Option<Node> {
        if let Self::Fixed(node) = self {
            Some(node)
        } else {
            None
        }
    }
}

fn has(node: &Node, path: &[&str]) -> bool {
    let Some((step, rest)) = path.split_first() else {
        return !matches!(node, Node::Null | Node::Bool(false));
    };
    match node {
        Node::List(items) => *step == "*" && items.iter().any(|item| has(item, rest)),
        node => node.get(step).is_some_and(|below| has(below, rest)),
    }
}

impl Chosen {
    /// Returns the trees of the profiles.
    pub fn trees(&self) -> impl Iterator<Item = &ObjectTree> {
        self.options.iter().filter_map(|(_, tree)| tree.as_ref())
    }
}
