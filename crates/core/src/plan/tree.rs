//! Builds and queries trees.

use super::{Chosen, Leaf, Tree};
use crate::value::{Key, Map, Node};

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

    fn into_fixed(self) -> Option<Node> {
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

/// A map under construction.
#[derive(Clone, Default)]
pub(crate) struct Fields(Vec<(Key, Tree)>);

impl Fields {
    /// Sets `key`, unless the value is `None`.
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Option<Tree>>) {
        if let Some(value) = value.into() {
            self.0.push((Key::from(key), value));
        }
    }

    /// Sets `key` to fixed text.
    pub(crate) fn put_text(&mut self, key: &str, text: &str) {
        self.put(key, Tree::Fixed(Node::from(text)));
    }

    /// Adds the keys of `others`.
    pub(crate) fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// True if `key` is set.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| &**name == key)
    }

    /// Returns the keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter().map(|(key, _)| key)
    }

    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &Key) -> Option<&Tree> {
        let found = self.0.iter().find(|(known, _)| known == key);
        found.map(|(_, tree)| tree)
    }

    /// True if no key is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns a map with only this one, under `key`.
    pub(crate) fn into_root(self, key: &str) -> Self {
        let mut root = Self::default();
        root.put(key, self.into_tree());
        root
    }

    /// Returns the map with sorted keys; fixed if all values are.
    pub(crate) fn into_tree(mut self) -> Tree {
        self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        if self
            .0
            .iter()
            .all(|(_, value)| matches!(value, Tree::Fixed(_)))
        {
            let fixed = self
                .0
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.into_fixed()?)));
            return Tree::Fixed(Node::Map(fixed.collect::<Map>()));
        }
        Tree::Map(self.0.into())
    }

    /// Returns the map, or `None` if it is empty.
    pub(crate) fn into_optional(self) -> Option<Tree> {
        (!self.is_empty()).then(|| self.into_tree())
    }

    /// Returns the map as a part, which is left out if the value that was set first is.
    pub(crate) fn into_part(self) -> Tree {
        if matches!(self.0.first(), Some((_, Tree::Fixed(_)))) {
            return self.into_tree();
        }
        Tree::Part(self.0.into())
    }
}
