//! Maps under construction.

use crate::{
    plan::ObjectTree,
    value::{Key, Map, Node},
};

/// A map under construction.
#[derive(Clone, Default)]
pub(crate) struct Fields(Vec<(Key, ObjectTree)>);

impl Fields {
    /// Sets `key`, unless the value is `None`.
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Option<ObjectTree>>) {
        if let Some(value) = value.into() {
            self.0.push((Key::from(key), value));
        }
    }

    /// Sets `key` to fixed text.
    pub(crate) fn put_text(&mut self, key: &str, text: &str) {
        self.put(key, ObjectTree::Fixed(Node::from(text)));
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
    pub(crate) fn get(&self, key: &Key) -> Option<&ObjectTree> {
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
    pub(crate) fn into_tree(mut self) -> ObjectTree {
        self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
        if self
            .0
            .iter()
            .all(|(_, value)| matches!(value, ObjectTree::Fixed(_)))
        {
            let fixed = self
                .0
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.into_fixed()?)));
            return ObjectTree::Fixed(Node::Map(fixed.collect::<Map>()));
        }
        ObjectTree::Map(self.0.into())
    }

    /// Returns the map, or `None` if it is empty.
    pub(crate) fn into_optional(self) -> Option<ObjectTree> {
        (!self.is_empty()).then(|| self.into_tree())
    }

    /// Returns the map as a part, which is left out if the value that was set first is.
    pub(crate) fn into_part(self) -> ObjectTree {
        if matches!(self.0.first(), Some((_, ObjectTree::Fixed(_)))) {
            return self.into_tree();
        }
        ObjectTree::Part(self.0.into())
    }
}
