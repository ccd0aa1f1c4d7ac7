//! Combines rendered maps and lists.

use orkestra_object::value::{Key, Node};

/// Returns both values as one: of maps the second takes precedence, lists follow one another, and of other values the second
/// counts.
pub(crate) fn joined(first: Option<Node>, second: Option<Node>) -> Option<Node> {
    Some(match (first, second) {
        (Some(Node::Map(mut first)), Some(Node::Map(second))) => {
            for (key, value) in second.iter() {
                first.insert(Key::clone(key), value.clone());
            }
            Node::Map(first)
        }
        (Some(Node::List(first)), Some(Node::List(second))) => {
            let mut items = first.into_vec();
            items.extend(second.into_vec());
            Node::List(items.into())
        }
        (first, second) => return second.or(first),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_are_merged_and_lists_follow_one_another() {
        let node = |text: &str| serde_json::from_str::<Node>(text).ok();
        for (first, second, both) in [
            (r#"{"a":1,"b":1}"#, r#"{"b":2}"#, r#"{"a":1,"b":2}"#),
            ("[1]", "[2,3]", "[1,2,3]"),
        ] {
            assert_eq!(joined(node(first), node(second)), node(both));
        }
        assert_eq!(joined(None, node("[1]")), node("[1]"));
        assert_eq!(joined(node("[1]"), None), node("[1]"));
    }
}
