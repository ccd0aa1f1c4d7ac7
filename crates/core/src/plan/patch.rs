//! Merges a rendered `patch` into a rendered object.
//!
//! It is a strategic merge, as in `kubectl patch`: maps are merged key by key, `null` removes a key, a list is merged by
//! the key of its items where Kubernetes does so, and replaced everywhere else. `$patch: replace` and `$patch: delete` have
//! the same meaning.

use crate::value::{Key, Map, Node};

/// The key in a map that controls how it is merged.
pub(crate) const DIRECTIVE: &str = "$patch";
pub(crate) const REPLACE: &str = "replace";
pub(crate) const DELETE: &str = "delete";

/// Lists that are merged, and the key of their items; if a list of this name has several keys, the one present in an item
/// applies.
///
/// Source: Kubernetes API reference, `patchMergeKey` of the fields of Pods, Services and `ServiceAccounts`.
const KEYED: [(&str, &[&str]); 13] = [
    ("containers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("ports", &["containerPort", "port"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("secrets", &["name"]),
    ("topologySpreadConstraints", &["topologyKey"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];

pub(crate) fn keys_of(list: &str) -> Option<&'static [&'static str]> {
    let is_it = |(name, _): &&(&str, &[&str])| *name == list;
    KEYED.iter().find(is_it).map(|(_, keys)| *keys)
}

/// Returns the object with the patch merged into it, both rendered.
pub(crate) fn merged(object: Node, patch: &Node) -> Node {
    merge(object, patch).unwrap_or_default()
}

/// Returns `None` if the patch says `delete`.
fn merge(object: Node, patch: &Node) -> Option<Node> {
    let (Node::Map(mut entries), Node::Map(changes)) = (object, patch) else {
        return bare(patch);
    };
    match changes.get(DIRECTIVE).and_then(Node::as_str) {
        Some(DELETE) => return None,
        Some(REPLACE) => return bare(patch),
        _ => {}
    }
    for (key, change) in changes.iter() {
        let before = entries.remove(key);
        let after = match (before, change) {
            (_, Node::Null) => None,
            (Some(Node::List(items)), Node::List(others)) => match keys_of(key) {
                Some(keys) => Some(merge_lists(items.into_vec(), others, keys)),
                None => bare(change),
            },
            (Some(before), change) => merge(before, change),
            (None, change) => bare(change),
        };
        if let Some(after) = after {
            entries.insert(Key::clone(key), after);
        }
    }
    Some(Node::Map(entries))
}

fn merge_lists(mut items: Vec<Node>, changes: &[Node], keys: &[&str]) -> Node {
    for change in changes {
        let key = keys.iter().find(|key| change.get(key).is_some());
        let same = |item: &Node| key.is_some_and(|key| item.get(key) == change.get(key));
        match items.iter().position(same) {
            Some(index) => {
                let item = items.remove(index);
                if let Some(item) = merge(item, change) {
                    items.insert(index, item);
                }
            }
            None => items.extend(bare(change)),
        }
    }
    Node::List(items.into())
}

/// Returns the value of a patch that has nothing to merge into.
fn bare(patch: &Node) -> Option<Node> {
    match patch {
        Node::Null => None,
        Node::Map(entries) => {
            if entries.get(DIRECTIVE).and_then(Node::as_str) == Some(DELETE) {
                return None;
            }
            let kept = entries.iter().filter(|(key, _)| &***key != DIRECTIVE);
            let kept = kept.filter_map(|(key, below)| Some((Key::clone(key), bare(below)?)));
            Some(Node::Map(kept.collect::<Map>()))
        }
        Node::List(items) => Some(Node::List(items.iter().filter_map(bare).collect())),
        other => Some(other.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    fn assert_merged(object: &str, patch: &str, expected: &str) {
        let merged = merged(node(object), &node(patch));
        assert_eq!(merged, node(expected), "{patch}");
    }

    #[test]
    fn maps_are_merged_and_null_takes_away() {
        assert_merged(
            r#"{"spec":{"a":1,"b":{"x":1,"y":2}}}"#,
            r#"{"spec":{"a":null,"b":{"y":3},"c":{"d":null,"e":4}}}"#,
            r#"{"spec":{"b":{"x":1,"y":3},"c":{"e":4}}}"#,
        );
        assert_merged(
            r#"{"a":{"x":1},"b":2}"#,
            r#"{"a":{"$patch":"replace","y":2}}"#,
            r#"{"a":{"y":2},"b":2}"#,
        );
    }

    #[test]
    fn lists_are_merged_by_the_keys_of_kubernetes_and_others_are_replaced() {
        assert_merged(
            r#"{"containers":[{"name":"web","image":"a","env":[{"name":"A","value":"1"}],"args":["x"]},{"name":"old"}]}"#,
            r#"{"containers":[{"name":"web","env":[{"name":"B","value":"2"},{"name":"A","value":"3"}],"args":["y"]},{"name":"side"},{"name":"old","$patch":"delete"}]}"#,
            r#"{"containers":[{"name":"web","image":"a","env":[{"name":"A","value":"3"},{"name":"B","value":"2"}],"args":["y"]},{"name":"side"}]}"#,
        );
        assert_merged(
            r#"{"ports":[{"port":80},{"port":443}]}"#,
            r#"{"ports":[{"port":443,"name":"tls"}]}"#,
            r#"{"ports":[{"port":80},{"port":443,"name":"tls"}]}"#,
        );
        assert_merged(
            r#"{"tolerations":[{"key":"a"}]}"#,
            r#"{"tolerations":[{"key":"b"}]}"#,
            r#"{"tolerations":[{"key":"b"}]}"#,
        );
    }
}
