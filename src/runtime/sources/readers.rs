//! Who reads what: which custom resources must look again when something changes that is not theirs.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
};

use orkestra_core::plan::ObjectKey;

/// The custom resources of an operator, by what their passes have read. What a pass looked for and did not find counts as
/// read.
#[derive(Debug)]
pub(in crate::runtime) struct Readers<T> {
    readers: HashMap<T, BTreeSet<ObjectKey>>,
    reads: HashMap<ObjectKey, BTreeSet<T>>,
}

impl<T> Default for Readers<T> {
    fn default() -> Self {
        Self {
            readers: HashMap::new(),
            reads: HashMap::new(),
        }
    }
}

impl<T: Clone + Eq + Hash + Ord> Readers<T> {
    /// A pass over `reader` is about to read `thing`: to be called before it looks, so that no change falls between.
    pub(in crate::runtime) fn note(&mut self, reader: &ObjectKey, thing: T) {
        let readers = self.readers.entry(thing.clone()).or_default();
        if readers.insert(reader.clone()) {
            self.reads.entry(reader.clone()).or_default().insert(thing);
        }
    }

    /// A pass over `reader` is decided, and has read these things alone.
    pub(in crate::runtime) fn keep(&mut self, reader: &ObjectKey, things: &BTreeSet<T>) {
        let Some(known) = self.reads.get_mut(reader) else {
            return;
        };
        let gone: Vec<T> = known.difference(things).cloned().collect();
        known.retain(|thing| things.contains(thing));
        if known.is_empty() {
            self.reads.remove(reader);
        }
        for thing in gone {
            self.leave(reader, &thing);
        }
    }

    /// `reader` is gone.
    pub(in crate::runtime) fn forget(&mut self, reader: &ObjectKey) {
        self.keep(reader, &BTreeSet::new());
    }

    /// Who reads `thing`.
    pub(in crate::runtime) fn of(&self, thing: &T) -> Vec<ObjectKey> {
        let readers = self.readers.get(thing).into_iter().flatten();
        readers.cloned().collect()
    }

    fn leave(&mut self, reader: &ObjectKey, thing: &T) {
        if let Some(readers) = self.readers.get_mut(thing) {
            readers.remove(reader);
            if readers.is_empty() {
                self.readers.remove(thing);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: None,
            name: name.into(),
        }
    }

    #[test]
    fn readers_are_known_until_a_pass_reads_something_else_or_they_are_gone() {
        let mut readers = Readers::default();
        readers.note(&key("a"), "lake");
        readers.note(&key("a"), "spring");
        readers.note(&key("b"), "lake");
        assert_eq!(readers.of(&"lake"), [key("a"), key("b")]);
        readers.keep(&key("a"), &BTreeSet::from(["spring"]));
        assert_eq!(readers.of(&"lake"), [key("b")]);
        assert_eq!(readers.of(&"spring"), [key("a")]);
        readers.forget(&key("a"));
        readers.forget(&key("b"));
        assert!(readers.readers.is_empty() && readers.reads.is_empty());
    }
}
