//! Builds and queries trees.

use super::{Chosen, Leaf, Tree};
use crate::value::Node;

impl Tree {
    /// True if the tree has a value other than `false` at the path, or a template that may render one: what a template gives
    /// is up to the author of a custom resource. `*` is any item or key.
    pub(crate) fn may_have(&self, path: &[&str]) -> bool {
        let Some((step, rest)) = path.split_first() else {
            return !matches!(self, Self::Fixed(Node::Null | Node::Bool(false)));
        };
        match self {
            Self::Fixed(node) => has(node, path),
            // A text field of the object would be no map.
            Self::Leaf(_) => true,
            Self::Map(entries) | Self::Part(entries) => entries
                .iter()
                .any(|(key, below)| (*step == "*" || **key == **step) && below.may_have(rest)),
            Self::List(items) => *step == "*" && items.iter().any(|item| item.may_have(rest)),
            Self::Patched(parts) => parts.0.may_have(path) || parts.1.may_have(path),
            Self::Chosen(chosen) => chosen.trees().any(|tree| tree.may_have(path)),
            Self::ContainerName(_) | Self::Image(_) | Self::Workload(_) | Self::Owner(_) => false,
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
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.options.iter().filter_map(|(_, tree)| tree.as_ref())
    }
}
