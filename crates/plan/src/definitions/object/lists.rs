//! Duplicates in sets and associative lists.

use std::collections::BTreeMap;

use super::words_of;
use orkestra_object::value::Node;

/// An item that is equal to an earlier one.
pub(crate) struct Duplicate {
    /// Its position.
    pub(crate) index: usize,
    /// The position of the first one.
    pub(crate) first: usize,
    /// What identifies both.
    pub(crate) identity: String,
}

/// Returns the duplicates in a list of the type `set` or `map`; other lists have none.
pub(crate) fn duplicates(schema: &Node, items: &[Node]) -> Vec<Duplicate> {
    let keys = words_of(schema.get("x-kubernetes-list-map-keys"));
    let default = |key: &str| {
        let field = schema.get("items")?.get("properties")?.get(key)?;
        field.get("default").map(Node::to_text)
    };
    let identity = |item: &Node| match schema.get("x-kubernetes-list-type")?.as_str()? {
        "set" => Some(item.to_json().to_string()),
        "map" => {
            let parts = keys.iter().map(|key| {
                let value = item.get(key).map(Node::to_text).or_else(|| default(key));
                format!("{key}: {:?}", value.unwrap_or_default())
            });
            Some(parts.collect::<Vec<_>>().join(", "))
        }
        _ => None,
    };
    let (mut seen, mut found) = (BTreeMap::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let Some(identity) = identity(item) else {
            break;
        };
        match seen.get(&identity) {
            Some(&first) => found.push(Duplicate {
                index,
                first,
                identity,
            }),
            None => {
                seen.insert(identity, index);
            }
        }
    }
    found
}
