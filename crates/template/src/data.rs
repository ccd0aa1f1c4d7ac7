//! The data that a template is evaluated on.

use jiff::Timestamp;

use super::Entropy;
use orkestra_object::value::{Key, Map, Node};

/// The root data: names such as `metadata`, `spec`, `children`, each with a borrowed tree.
///
/// Nothing is copied. A clone costs a few words per name, so the data can be extended for each item of a `forEach`:
///
/// ```
/// use orkestra_template::{Data, EvalBudget, Template};
/// use orkestra_object::value::Node;
///
/// let (spec, item) = (Node::from("unused"), Node::from("eu"));
/// let data = Data::new().with("spec", &spec);
/// let each = data.clone().with("item", &item);
/// let text = Template::parse("region-{{ .item }}")
///     .map_err(|errors| errors[0].clone())?
///     .render_text(&each, &mut EvalBudget::default())?;
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
    /// Creates data without names.
    pub fn new() -> Data<'a> {
        Data::default()
    }

    /// Uses the keys of a map as names. Any other node yields no names.
    pub fn of(root: &'a Node) -> Data<'a> {
        let entries = root.as_map().into_iter().flat_map(Map::iter);
        Data {
            names: entries.map(|(key, node)| (key.as_str(), node)).collect(),
            ..Data::default()
        }
    }

    /// Sets the time that notes take as the present.
    #[must_use]
    pub fn at(mut self, now: Timestamp) -> Data<'a> {
        self.now = Some(now);
        self
    }

    /// Sets the source of random bytes for notes.
    #[must_use]
    pub fn random(mut self, entropy: &'a Entropy) -> Data<'a> {
        self.entropy = Some(entropy);
        self
    }

    /// Returns the time of the evaluation; the epoch if none was set.
    pub fn now(&self) -> Timestamp {
        self.now.unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Returns the source of random bytes, if one was set.
    pub fn entropy(&self) -> Option<&'a Entropy> {
        self.entropy
    }

    /// Adds a name, or replaces the tree of an existing name.
    #[must_use]
    pub fn with(mut self, name: &'a str, node: &'a Node) -> Data<'a> {
        match self.names.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = node,
            None => self.names.push((name, node)),
        }
        self
    }

    /// Returns the tree of a name.
    pub fn get(&self, name: &str) -> Option<&'a Node> {
        self.names
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, node)| *node)
    }

    /// Iterates over the names and their trees, in insertion order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a str, &'a Node)> {
        self.names.iter().copied()
    }

    /// Returns the number of bytes that [`Data::to_node`] allocates.
    pub(crate) fn heap_bytes(&self) -> usize {
        let entry = |node: &Node| size_of::<(Key, Node)>() + node.heap_bytes();
        self.names.iter().map(|(_, node)| entry(node)).sum()
    }

    /// Copies the data into one map.
    pub(crate) fn to_node(&self) -> Node {
        let entries = self
            .iter()
            .map(|(name, node)| (Key::new(name), node.clone()));
        Node::Map(entries.collect())
    }
}
