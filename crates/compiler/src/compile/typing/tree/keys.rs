//! Checks the keys of items of associative lists: two items with the same keys, and keys that a patch needs.

use super::TreePosition;
use orkestra_language::{diagnostics::Code, schema::Schema};
use orkestra_object::value::Node;
use orkestra_plan::{
    ObjectTree,
    list_keys::{ListKey, ListKeys, identity},
};

/// The value of a key, as far as it is known before anything is rendered.
#[derive(Clone)]
pub(crate) enum KeyValue<'t> {
    Known(Node),
    /// A template, which renders the same value wherever it stands.
    Template(&'t str),
    Unknown,
}

impl From<Node> for KeyValue<'_> {
    fn from(node: Node) -> Self {
        Self::Known(node)
    }
}

impl PartialEq for KeyValue<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => one == other,
            (Self::Template(one), Self::Template(other)) => one == other,
            _ => false,
        }
    }
}

/// An item of a list whose keys can be read.
pub(crate) trait Item {
    /// Returns the value of a field; `None` if it is absent.
    fn key(&self, name: &str) -> Option<KeyValue<'_>>;

    /// True if the fields of the item are known.
    fn is_known(&self) -> bool;
}

impl Item for Node {
    fn key(&self, name: &str) -> Option<KeyValue<'_>> {
        let found = self.get(name).filter(|node| **node != Node::Null);
        Some(KeyValue::Known(found?.clone()))
    }

    fn is_known(&self) -> bool {
        matches!(self, Node::Map(_))
    }
}

impl Item for ObjectTree {
    fn key(&self, name: &str) -> Option<KeyValue<'_>> {
        let entries = match self {
            ObjectTree::Fixed(node) => return node.key(name),
            ObjectTree::Map(entries) | ObjectTree::Part(entries) => entries,
            _ => return Some(KeyValue::Unknown),
        };
        let (_, value) = entries.iter().find(|(key, _)| &**key == name)?;
        Some(match value {
            ObjectTree::Fixed(node) => KeyValue::Known(node.clone()),
            ObjectTree::Leaf(leaf) | ObjectTree::ContainerName(leaf) => {
                KeyValue::Template(leaf.template.source().trim())
            }
            _ => KeyValue::Unknown,
        })
    }

    fn is_known(&self) -> bool {
        match self {
            ObjectTree::Fixed(node) => node.is_known(),
            ObjectTree::Map(_) | ObjectTree::Part(_) => true,
            _ => false,
        }
    }
}

/// Reports the items of a list whose keys are missing or taken.
pub(crate) fn check<T: Item>(items: &[T], schema: Schema<'_>, place: &TreePosition<'_>) {
    let keys = ListKeys::of_list(schema);
    if keys.is_empty() {
        return;
    }
    if place.is_patch {
        return needed(items, &keys, place);
    }
    let mut seen = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let Some(found) = identity(&keys, |name| item.key(name)) else {
            continue;
        };
        if seen.contains(&found) {
            let at = place.index(index).key(&keys);
            at.error(Code::SetTwice, twice(&keys, &found));
        } else {
            seen.push(found);
        }
    }
}

/// Reports items of a patch that lack a key without a default.
fn needed<T: Item>(items: &[T], keys: &[ListKey], place: &TreePosition<'_>) {
    let list = place.path.rsplit('.').next().unwrap_or_default();
    for (index, item) in items.iter().enumerate().filter(|(_, item)| item.is_known()) {
        let missing = keys
            .iter()
            .find(|key| key.default.is_none() && item.key(&key.name).is_none());
        let Some(key) = missing else { continue };
        let at = place.index(index).at;
        let message = format!(
            "items of `{list}` are merged by `{}`, which is missing",
            key.name
        );
        if list == "containers" {
            let hint = "the container of `image` has the name of its workload";
            at.error_hint(Code::Missing, message, hint);
        } else {
            at.error(Code::Missing, message);
        }
    }
}

fn twice(keys: &[ListKey], found: &[KeyValue<'_>]) -> String {
    let text = |value: &KeyValue<'_>| match value {
        KeyValue::Known(node) => node.to_text().into_owned(),
        KeyValue::Template(source) => (*source).to_owned(),
        KeyValue::Unknown => String::new(),
    };
    if let [only] = found {
        return format!("`{}` is declared twice", text(only));
    }
    let pairs = keys.iter().zip(found);
    let pairs: Vec<String> = pairs
        .map(|(key, value)| format!("{}: {}", key.name, text(value)))
        .collect();
    format!("`{}` is declared twice", pairs.join(", "))
}
