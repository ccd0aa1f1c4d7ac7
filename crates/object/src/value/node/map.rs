//! Maps sorted by key.

use crate::value::{Key, Node};

/// A map from keys to nodes: one boxed slice, sorted by key, with unique keys.
///
/// Lookups are binary searches. Inserting copies the slice, which suits trees that are built once and read often; collect from an
/// iterator to build a map of many keys.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map(Box<[(Key, Node)]>);

impl Map {
    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.position(key).ok().map(|at| &self.0[at].1)
    }

    /// Returns the value of a key, mutably.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let at = self.position(key).ok()?;
        Some(&mut self.0[at].1)
    }

    /// Iterates over the entries in key order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Key, &Node)> + DoubleEndedIterator {
        self.0.iter().map(|(key, node)| (key, node))
    }

    /// Returns the entry at a position in key order, from 0.
    pub fn nth(&self, position: usize) -> Option<(&Key, &Node)> {
        self.0.get(position).map(|(key, node)| (key, node))
    }

    /// Iterates over the keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Key> + DoubleEndedIterator {
        self.0.iter().map(|(key, _)| key)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Inserts a value under a key and returns the previous one.
    pub fn insert(&mut self, key: Key, node: Node) -> Option<Node> {
        match self.position(&key) {
            Ok(at) => Some(std::mem::replace(&mut self.0[at].1, node)),
            Err(at) => {
                let mut entries = std::mem::take(&mut self.0).into_vec();
                entries.reserve_exact(1);
                entries.insert(at, (key, node));
                self.0 = entries.into_boxed_slice();
                None
            }
        }
    }

    /// Returns the value of a key, mutably; inserts null if there is none.
    pub fn entry(&mut self, key: &Key) -> &mut Node {
        let at = match self.position(key) {
            Ok(at) => at,
            Err(at) => {
                self.insert(key.clone(), Node::Null);
                at
            }
        };
        &mut self.0[at].1
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let at = self.position(key).ok()?;
        let mut entries = std::mem::take(&mut self.0).into_vec();
        let (_, node) = entries.remove(at);
        self.0 = entries.into_boxed_slice();
        Some(node)
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(key))
    }
}

impl FromIterator<(Key, Node)> for Map {
    /// Sorts the entries; of entries with the same key the last one is kept.
    fn from_iter<I: IntoIterator<Item = (Key, Node)>>(entries: I) -> Map {
        let given = entries.into_iter();
        // `collect` reserves at least four entries, and the excess would have to be freed.
        let mut entries: Vec<(Key, Node)> = Vec::with_capacity(given.size_hint().0);
        entries.extend(given);
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            // The sort is stable, so the last of equal keys stays last; `dedup_by` drops its first argument, the later one, after
            // the earlier one has taken its value.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, earlier| {
                let same = later.0 == earlier.0;
                if same {
                    std::mem::swap(&mut later.1, &mut earlier.1);
                }
                same
            });
        }
        Map(entries.into_boxed_slice())
    }
}

impl Extend<(Key, Node)> for Map {
    /// Inserts all entries at once; they replace existing ones.
    fn extend<I: IntoIterator<Item = (Key, Node)>>(&mut self, entries: I) {
        let mut all = std::mem::take(&mut self.0).into_vec();
        let entries = entries.into_iter();
        all.reserve_exact(entries.size_hint().0);
        all.extend(entries);
        *self = all.into_iter().collect();
    }
}

impl IntoIterator for Map {
    type Item = (Key, Node);
    type IntoIter = std::vec::IntoIter<(Key, Node)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(entries: &[(&str, i64)]) -> Map {
        entries
            .iter()
            .map(|(key, n)| (Key::new(key), Node::Int(*n)))
            .collect()
    }

    #[test]
    fn the_last_of_equal_keys_wins() {
        let map = map(&[("b", 1), ("a", 2), ("b", 3), ("b", 4), ("a", 5)]);
        assert_eq!(map.len(), 2);
        assert_eq!(map.get("a"), Some(&Node::Int(5)));
        assert_eq!(map.get("b"), Some(&Node::Int(4)));
    }

    #[test]
    fn keys_come_in_order_whatever_the_order_of_insertion() {
        let mut map = map(&[("m", 1)]);
        map.insert("z".into(), Node::Int(2));
        map.insert("a".into(), Node::Int(3));
        let keys: Vec<&str> = map.keys().map(Key::as_str).collect();
        assert_eq!(keys, ["a", "m", "z"]);
    }

    #[test]
    fn a_map_is_extended_in_key_order_and_the_new_win() {
        let mut one = map(&[("b", 1), ("d", 2)]);
        one.extend(map(&[("a", 3), ("d", 4), ("c", 5)]));
        assert_eq!(one, map(&[("a", 3), ("b", 1), ("c", 5), ("d", 4)]));
    }

    #[test]
    fn inserting_and_removing_return_what_was_there() {
        let mut map = map(&[("a", 1)]);
        assert_eq!(map.insert("a".into(), Node::Int(2)), Some(Node::Int(1)));
        assert_eq!(map.remove("a"), Some(Node::Int(2)));
        assert_eq!(map.remove("a"), None);
        assert!(map.is_empty());
    }
}
