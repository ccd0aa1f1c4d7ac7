//! Merges a rendered `patch` into a rendered object.
//!
//! It is a strategic merge, as in `kubectl patch`: maps are merged key by key, `null` removes a key, a list is merged by
//! all keys of its items where the schema of the kind has keys, and replaced everywhere else. `$patch: replace` and
//! `$patch: delete` have the same meaning.

use super::ListKeys;
use orkestra_object::value::{Key, Map, Node};

/// The key in a map that controls how it is merged.
pub const DIRECTIVE: &str = "$patch";
/// The directive that replaces a map or list.
pub const REPLACE: &str = "replace";
/// The directive that removes a map, or an item of a list.
pub const DELETE: &str = "delete";

/// Returns the object with the patch merged into it, both rendered; `lists` are the lists that are merged item by item.
pub fn merged(object: Node, patch: &Node, lists: &ListKeys) -> Node {
    merge(object, patch, Some(lists)).unwrap_or_default()
}

/// Returns `None` if the patch says `delete`.
fn merge(object: Node, patch: &Node, lists: Option<&ListKeys>) -> Option<Node> {
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
        let below = lists.and_then(|lists| lists.field(key));
        let after = match (before, change) {
            (_, Node::Null) => None,
            (Some(Node::List(items)), Node::List(others)) => match below {
                Some(list) if list.is_associative() => {
                    Some(merge_lists(items.into_vec(), others, list))
                }
                _ => bare(change),
            },
            (Some(before), change) => merge(before, change, below),
            (None, change) => bare(change),
        };
        if let Some(after) = after {
            entries.insert(Key::clone(key), after);
        }
    }
    Some(Node::Map(entries))
}

fn merge_lists(mut items: Vec<Node>, changes: &[Node], list: &ListKeys) -> Node {
    for change in changes {
        match items.iter().position(|item| list.is_same(item, change)) {
            Some(index) => {
                let item = items.remove(index);
                if let Some(item) = merge(item, change, list.each()) {
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
    use orkestra_language::schema::{BuiltIn, NestedSchema};

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    /// Merges a patch of a Pod's or a Service's spec.
    fn assert_merged(object: &str, patch: &str, expected: &str) {
        let built_in = BuiltIn::new();
        let kind = if object.contains("\"port\"") {
            "Service"
        } else {
            "Pod"
        };
        let NestedSchema::Schema(schema) = built_in.kind("", "v1", kind).unwrap().field("spec")
        else {
            panic!("a {kind} has no spec");
        };
        let lists = ListKeys::of_value(&node(patch), schema);
        let merged = merged(node(object), &node(patch), &lists);
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
            r#"{"ports":[{"port":53}]}"#,
            r#"{"ports":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP","name":"tcp"}]}"#,
            r#"{"ports":[{"port":53,"protocol":"TCP","name":"tcp"},{"port":53,"protocol":"UDP"}]}"#,
        );
        assert_merged(
            r#"{"topologySpreadConstraints":[{"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","maxSkew":1}],"hostAliases":[{"ip":"1.2.3.4","hostnames":["a"]}]}"#,
            r#"{"topologySpreadConstraints":[{"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","maxSkew":2}],"hostAliases":[{"ip":"1.2.3.4","hostnames":["b"]}]}"#,
            r#"{"topologySpreadConstraints":[{"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","maxSkew":1},{"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","maxSkew":2}],"hostAliases":[{"ip":"1.2.3.4","hostnames":["b"]}]}"#,
        );
        assert_merged(
            r#"{"tolerations":[{"key":"a"}]}"#,
            r#"{"tolerations":[{"key":"b"}]}"#,
            r#"{"tolerations":[{"key":"b"}]}"#,
        );
    }
}
