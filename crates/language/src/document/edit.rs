//! Moves keys in a tree.

use crate::tree::{Tree, TreeKey, TreeValue};

impl Tree {
    /// Returns the entries, if this is a map.
    pub fn as_map_mut(&mut self) -> Option<&mut Vec<(TreeKey, Tree)>> {
        match &mut self.value {
            TreeValue::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the items, if this is a list.
    pub fn as_list_mut(&mut self) -> Option<&mut Vec<Tree>> {
        match &mut self.value {
            TreeValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value of a key, if this is a map that has it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Tree> {
        let entries = self.as_map_mut()?;
        let entry = entries.iter_mut().find(|(key, _)| key.name == name);
        entry.map(|(_, value)| value)
    }

    /// Returns the value at a path of keys.
    pub fn below(&self, names: &[&str]) -> Option<&Tree> {
        names.iter().try_fold(self, |tree, name| tree.get(name))
    }

    /// Returns the value at a path of keys, mutable.
    pub(crate) fn below_mut(&mut self, names: &[&str]) -> Option<&mut Tree> {
        names.iter().try_fold(self, |tree, name| tree.get_mut(name))
    }

    /// Removes the entry at a path of keys, and every map that becomes empty.
    pub fn take(&mut self, names: &[&str]) -> Option<(TreeKey, Tree)> {
        let (first, rest) = names.split_first()?;
        let entries = self.as_map_mut()?;
        let at = entries.iter().position(|(key, _)| key.name == *first)?;
        if rest.is_empty() {
            return Some(entries.remove(at));
        }
        let taken = entries[at].1.take(rest);
        let is_empty = entries[at].1.as_map().is_some_and(<[_]>::is_empty);
        if taken.is_some() && is_empty {
            entries.remove(at);
        }
        taken
    }

    /// Inserts a value at a path of keys and creates maps as needed. Returns the value if something other than a map is on
    /// the path.
    pub fn put(&mut self, names: &[&str], key: TreeKey, value: Tree) -> Result<(), Tree> {
        let Some((first, rest)) = names.split_first() else {
            return Err(value);
        };
        if self.is_null() {
            self.value = TreeValue::Map(Vec::new());
        }
        let Some(entries) = self.as_map_mut() else {
            return Err(value);
        };
        let at = entries.iter().position(|(key, _)| key.name == *first);
        let name = (*first).to_owned();
        match (at, rest.is_empty()) {
            (Some(at), false) => entries[at].1.put(rest, key, value),
            (Some(_), true) => Err(value),
            (None, true) => {
                entries.push((TreeKey { name, ..key }, value));
                Ok(())
            }
            (None, false) => {
                let mut map = Tree::new(TreeValue::Map(Vec::new()));
                map.span = key.span;
                let outer = TreeKey {
                    name,
                    span: key.span,
                };
                map.put(rest, key, value)?;
                entries.push((outer, map));
                Ok(())
            }
        }
    }
}
