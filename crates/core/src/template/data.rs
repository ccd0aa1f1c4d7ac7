//! What a template is evaluated on.

use jiff::Timestamp;

use super::Entropy;
use crate::value::{Key, Map, Node};

/// The root data: names such as `metadata`, `spec`, `children`, each with a borrowed tree.
///
/// Nothing is copied; a clone costs a few words a name, so that one can be extended for each item of a
/// `forEach`:
///
/// ```
/// use orkestra_core::template::{Budget, Data, Template};
/// use orkestra_core::value::Node;
///
/// let (spec, item) = (Node::from("unused"), Node::from("eu"));
/// let data = Data::new().with("spec", &spec);
/// let each = data.clone().with("item", &item);
/// let text = Template::parse("region-{{ .item }}")
///     .map_err(|errors| errors[0].clone())?
///     .render_text(&each, &mut Budget::default())?;
/// assert_eq!(text, "region-eu");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Data<'a> {
    names: Vec<(&'a str, &'a Node)>,
    now: Option<Timestamp>,
    entropy: Option<&'a Entropy>,
}

impl<'a> Data<'a> {
    /// Data without any name.
    pub fn new() -> Data<'a> {
        Data::default()
    }

    /// The keys of a map as names; of any other node, nothing.
    pub fn of(root: &'a Node) -> Data<'a> {
        let entries = root.as_map().into_iter().flat_map(Map::iter);
        Data {
            names: entries.map(|(key, node)| (key.as_str(), node)).collect(),
            ..Data::default()
        }
    }

    /// The same data at a moment: what notes take for the present time.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Data<'a> {
        self.now = Some(now);
        self
    }

    /// The same data with a source of random bytes, for notes that draw from it.
    #[must_use]
    pub fn random(mut self, entropy: &'a Entropy) -> Data<'a> {
        self.entropy = Some(entropy);
        self
    }

    /// The moment of the evaluation; the epoch where none was given.
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// The source of random bytes, where one was given.
    pub fn entropy(&self) -> Option<&'a Entropy> {
        self.entropy
    }

    /// The same data with one name more, or with another tree under a name that is there.
    #[must_use]
    pub fn with(mut self, name: &'a str, node: &'a Node) -> Data<'a> {
        match self.names.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = node,
            None => self.names.push((name, node)),
        }
        self
    }

    /// The tree under a name.
    pub fn get(&self, name: &str) -> Option<&'a Node> {
        self.names
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, node)| *node)
    }

    /// The names and their trees, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a Node)> {
        self.names.iter().copied()
    }

    /// The bytes that [`Data::to_node`] takes.
    pub(super) fn heap_bytes(&self) -> usize {
        let entry = |node: &Node| size_of::<(Key, Node)>() + node.heap_bytes();
        self.names.iter().map(|(_, node)| entry(node)).sum()
    }

    /// The data as one map, which copies it.
    pub(super) fn to_node(&self) -> Node {
        let entries = self
            .iter()
            .map(|(name, node)| (Key::new(name), node.clone()));
        Node::Map(entries.collect())
    }
}
