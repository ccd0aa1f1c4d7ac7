//! Maps under construction.

use orkestra_object::value::{Key, Map, Node};
use orkestra_plan::{Leaf, ObjectTree};

/// A map under construction: keys with their values, and perhaps a template that returns further keys.
#[derive(Clone, Default)]
pub(crate) struct Fields {
    entries: Vec<(Key, ObjectTree)>,
    /// Its keys are in the map, too.
    template: Option<Leaf>,
    /// Keys that apply where the template returns no other value for them.
    defaults: Vec<(Key, ObjectTree)>,
}

impl Fields {
    /// Returns a map whose keys a template returns; an empty map after an error, which is reported.
    pub(crate) fn of_template(template: Option<Leaf>) -> Self {
        Self {
            template,
            ..Self::default()
        }
    }

    /// Sets `key`, unless the value is `None`.
    pub(crate) fn put(&mut self, key: &str, value: impl Into<Option<ObjectTree>>) {
        if let Some(value) = value.into() {
            self.entries.push((Key::from(key), value));
        }
    }

    /// Sets `key` if it has no value.
    pub(crate) fn put_default(&mut self, key: &str, value: ObjectTree) {
        if self.entries.iter().any(|(name, _)| &**name == key) {
            return;
        }
        let entries = match self.template {
            Some(_) => &mut self.defaults,
            None => &mut self.entries,
        };
        entries.push((Key::from(key), value));
    }

    /// Sets `key` to fixed text.
    pub(crate) fn put_text(&mut self, key: &str, text: &str) {
        self.put(key, ObjectTree::Fixed(Node::from(text)));
    }

    /// Adds the keys of `others`.
    pub(crate) fn extend(&mut self, others: Self) {
        self.entries.extend(others.entries);
        self.defaults.extend(others.defaults);
        self.template = self.template.take().or(others.template);
    }

    /// Returns the keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.entries.iter().map(|(key, _)| key)
    }

    /// Returns the value of `key`.
    pub(crate) fn get(&self, key: &Key) -> Option<&ObjectTree> {
        let found = self.entries.iter().find(|(known, _)| known == key);
        found.map(|(_, tree)| tree)
    }

    /// True if no key is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.template.is_none()
    }

    /// Returns a map with only this one, under `key`.
    pub(crate) fn into_root(self, key: &str) -> Self {
        let mut root = Self::default();
        root.put(key, self.into_tree());
        root
    }

    /// Returns the map with sorted keys; fixed if all values are.
    pub(crate) fn into_tree(self) -> ObjectTree {
        let Some(template) = self.template else {
            return map_of(self.entries);
        };
        let parts = [self.defaults, self.entries].map(|entries| {
            let is_given = !entries.is_empty();
            is_given.then(|| map_of(entries))
        });
        let [defaults, entries] = parts;
        let template = Some(ObjectTree::Leaf(template));
        let mut parts: Vec<ObjectTree> = [defaults, template, entries]
            .into_iter()
            .flatten()
            .collect();
        match parts.len() {
            1 => parts.remove(0),
            _ => ObjectTree::Joined(parts.into()),
        }
    }

    /// Returns the map, or `None` if it is empty.
    pub(crate) fn into_optional(self) -> Option<ObjectTree> {
        (!self.is_empty()).then(|| self.into_tree())
    }

    /// Returns the map as a part, which is left out if the value that was set first is.
    pub(crate) fn into_part(self) -> ObjectTree {
        if matches!(self.entries.first(), Some((_, ObjectTree::Fixed(_)))) {
            return self.into_tree();
        }
        ObjectTree::Part(self.entries.into())
    }
}

fn map_of(mut entries: Vec<(Key, ObjectTree)>) -> ObjectTree {
    entries.sort_by(|(a, _), (b, _)| a.cmp(b));
    let is_fixed = |(_, value): &(Key, ObjectTree)| matches!(value, ObjectTree::Fixed(_));
    if entries.iter().all(is_fixed) {
        let fixed = entries
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.into_fixed()?)));
        return ObjectTree::Fixed(Node::Map(fixed.collect::<Map>()));
    }
    ObjectTree::Map(entries.into())
}
