//! Builds and queries trees.

use super::{Chosen, Leaf, Tree};
use crate::value::Node;

impl Tree {
    /// True if the tree has this path; paths below a leaf are unknown.
    pub fn has(&self, path: &[&str]) -> bool {
        let Some((step, rest)) = path.split_first() else {
            return true;
        };
        match self {
            Self::Fixed(node) => node
                .get(step)
                .is_some_and(|below| Self::Fixed(below.clone()).has(rest)),
            Self::Map(entries) | Self::Part(entries) => entries
                .iter()
                .find(|(key, _)| &**key == *step)
                .is_some_and(|(_, below)| below.has(rest)),
            Self::Patched(parts) => parts.0.has(path) || parts.1.has(path),
            Self::Chosen(chosen) => chosen.trees().any(|tree| tree.has(path)),
            Self::List(_)
            | Self::Leaf(_)
            | Self::ContainerName(_)
            | Self::Image(_)
            | Self::Workload(_)
            | Self::Owner(_) => false,
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

impl Chosen {
    /// Returns the trees of the profiles.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.options.iter().filter_map(|(_, tree)| tree.as_ref())
    }
}
