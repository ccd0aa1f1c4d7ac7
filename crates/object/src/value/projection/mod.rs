//! Decodes only the needed parts of JSON text.
//!
//! ```text
//!  paths ──► Projection ──┐
//!                    ├──► the same tree as project(parse(text), paths);
//!  text ── serde ────┘    parts that no path selects are skipped without recursion, and take no memory
//! ```
//!
//! A part that no path selects may be unreadable at any depth: it is skipped. If a selected part is unreadable, [`Projection::decode`]
//! reads the others.

mod decode;

use std::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use smallvec::SmallVec;

use super::{
    Key, Map, Node, Path, PathStep,
    node::{
        DUPLICATE,
        serde::{Exact, USUAL, list_of},
    },
};

/// The parts of a text that are kept: compiled once, used for every object of a kind.
///
/// It is a [`DeserializeSeed`] for `serde_json`, so it can read a part of a text as well as the whole text.
#[derive(Clone, Debug, Default)]
pub struct Projection(Branch);

/// The parts that are kept of one value; `None` keeps all. Most branches are leaves, so a leaf takes only a pointer.
#[derive(Clone, Debug)]
struct Branch(Option<Box<Parts>>);

/// The parts that are kept of a map or a list.
#[derive(Clone, Debug, Default)]
struct Parts {
    /// The parts of a map's values, sorted by key.
    fields: Vec<(Key, Branch)>,
    /// The parts of a list's items, by position.
    items: Vec<(usize, Branch)>,
    /// The parts of every item of a list.
    each: Option<Branch>,
}

/// Keeps nothing.
impl Default for Branch {
    fn default() -> Self {
        Self(Some(Box::default()))
    }
}

impl Projection {
    /// Keeps the same parts as [`super::project`] with these paths.
    pub fn new<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut root = Branch::default();
        for path in paths {
            root.add(path.steps(), &Branch::WHOLE);
        }
        root.shrink();
        Self(root)
    }

    /// Keeps everything.
    pub fn whole() -> Self {
        Self(Branch::WHOLE)
    }

    /// Also keeps `paths` of every item of the list at `list`. Items keep their positions; an item without any of the paths
    /// becomes an empty map if it is a map, else null.
    #[must_use]
    pub fn with_each<'p>(mut self, list: &Path, paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let mut each = Branch::default();
        for path in paths {
            each.add(path.steps(), &Branch::WHOLE);
        }
        let of_list = Parts {
            each: Some(each),
            ..Parts::default()
        };
        self.0.add(list.steps(), &Branch(Some(Box::new(of_list))));
        self.0.shrink();
        self
    }

    /// Reads one JSON value.
    ///
    /// # Errors
    /// A kept part cannot be converted into a [`Node`], or has a duplicate key. Skipped parts must be syntactically valid JSON.
    pub fn read(&self, json: &[u8]) -> serde_json::Result<Node> {
        let mut deserializer = serde_json::Deserializer::from_slice(json);
        let node = self.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(node)
    }
}

impl Branch {
    const WHOLE: Self = Self(None);

    /// Also keeps `kept` of the value at these steps.
    fn add(&mut self, steps: &[PathStep], kept: &Self) {
        let Some((step, rest)) = steps.split_first() else {
            return self.merge(kept);
        };
        let Some(parts) = &mut self.0 else { return };
        if let PathStep::Field(key) = step {
            parts.field(key).add(rest, kept);
        }
        // A field that is a number selects an item of a list.
        if let Some(index) = step.index() {
            parts.item(index).add(rest, kept);
        }
    }

    /// Also keeps the parts that `other` keeps.
    fn merge(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Some(parts), Some(others)) => parts.merge(others),
            (Some(_), None) => *self = Self::WHOLE,
            (None, _) => {}
        }
    }

    /// Frees excess capacity: a projection is kept as long as its watch.
    fn shrink(&mut self) {
        let Some(parts) = &mut self.0 else { return };
        parts.fields.shrink_to_fit();
        parts.items.shrink_to_fit();
        let fields = parts.fields.iter_mut().map(|(_, branch)| branch);
        let items = parts.items.iter_mut().map(|(_, branch)| branch);
        fields
            .chain(items)
            .chain(&mut parts.each)
            .for_each(Self::shrink);
    }
}

impl Parts {
    fn merge(&mut self, other: &Self) {
        for (key, branch) in &other.fields {
            self.field(key).merge(branch);
        }
        for (index, branch) in &other.items {
            self.item(*index).merge(branch);
        }
        if let Some(each) = &other.each {
            self.each.get_or_insert_default().merge(each);
        }
    }

    fn field(&mut self, key: &Key) -> &mut Branch {
        let at = match self.fields.binary_search_by(|(known, _)| known.cmp(key)) {
            Ok(at) => at,
            Err(at) => {
                self.fields.insert(at, (key.clone(), Branch::default()));
                at
            }
        };
        &mut self.fields[at].1
    }

    fn item(&mut self, index: usize) -> &mut Branch {
        let at = match self.items.binary_search_by(|(known, _)| known.cmp(&index)) {
            Ok(at) => at,
            Err(at) => {
                self.items.insert(at, (index, Branch::default()));
                at
            }
        };
        &mut self.items[at].1
    }

    /// The position of a key's field.
    fn find(&self, key: &str) -> Option<usize> {
        let known = |(known, _): &(Key, Branch)| (**known).cmp(key);
        self.fields.binary_search_by(known).ok()
    }

    fn find_item(&self, index: usize) -> Option<&Branch> {
        let at = self.items.binary_search_by(|(known, _)| known.cmp(&index));
        self.items.get(at.ok()?).map(|(_, branch)| branch)
    }
}

impl<'de> DeserializeSeed<'de> for &Projection {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let found = (&self.0).deserialize(deserializer)?;
        Ok(found.unwrap_or_default())
    }
}

/// `None` is a value of which nothing is kept: one that is neither map nor list, or a list without any kept item.
impl<'de> DeserializeSeed<'de> for &Branch {
    type Value = Option<Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<Node>, D::Error> {
        match &self.0 {
            None => Exact.deserialize(deserializer).map(Some),
            Some(parts) => deserializer.deserialize_any(&**parts),
        }
    }
}

impl<'de> Visitor<'de> for &Parts {
    type Value = Option<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Option<Node>, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Option<Node>, A::Error> {
        let mut kept = SmallVec::<[Node; USUAL]>::new();
        for index in 0.. {
            let of_index = self.find_item(index);
            let read = match (of_index, self.each.as_ref()) {
                (None, None) => list.next_element::<IgnoredAny>()?.map(|_| None),
                (Some(branch), None) => list.next_element_seed(branch)?,
                (None, Some(each)) => list.next_element_seed(each)?.map(every),
                (Some(branch), Some(each)) => {
                    let mut both = branch.clone();
                    both.merge(each);
                    list.next_element_seed(&both)?.map(every)
                }
            };
            let Some(part) = read else { break };
            if let Some(part) = part {
                kept.resize(index, Node::Null);
                kept.push(part);
            }
        }
        Ok((!kept.is_empty()).then(|| list_of(kept)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Node>, A::Error> {
        let mut entries = SmallVec::<[(Key, Node); USUAL]>::new();
        let mut seen = SmallVec::<[usize; USUAL]>::new();
        while let Some(wanted) = map.next_key_seed(KeySeed(self))? {
            let Some(at) = wanted else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if seen.contains(&at) {
                return Err(A::Error::custom(DUPLICATE));
            }
            seen.push(at);
            let (key, branch) = &self.fields[at];
            if let Some(part) = map.next_value_seed(branch)? {
                entries.push((key.clone(), part));
            }
        }
        Ok(Some(Node::Map(entries.into_iter().collect::<Map>())))
    }
}

/// An item of a list of which every item is kept.
#[expect(clippy::unnecessary_wraps, reason = "stands for what may be left out")]
fn every(part: Option<Node>) -> Option<Node> {
    Some(part.unwrap_or_default())
}

/// A key, as the position of its field, if any. Keys that are not kept are not interned.
struct KeySeed<'b>(&'b Parts);

impl<'de> DeserializeSeed<'de> for KeySeed<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.find(text))
    }
}

#[cfg(test)]
mod tests;
