//! JSON merge patches.

use orkestra_object::value::{Key, Map, Node};

/// Returns the JSON merge patch from `live` to `wanted`; none if they are equal. Source: RFC 7396.
pub fn merge_patch(live: &Node, wanted: &Node) -> Option<Node> {
    let (Node::Map(before), Node::Map(after)) = (live, wanted) else {
        return (!is_same(live, wanted)).then(|| wanted.clone());
    };
    let mut patch = Vec::new();
    for (key, value) in after.iter() {
        let change = match before.get(key) {
            Some(old) => merge_patch(old, value),
            None => says_something(value).then(|| value.clone()),
        };
        patch.extend(change.map(|change| (Key::clone(key), change)));
    }
    for (key, _) in before.iter().filter(|(key, _)| after.get(key).is_none()) {
        patch.push((Key::clone(key), Node::Null));
    }
    (!patch.is_empty()).then(|| Node::Map(patch.into_iter().collect::<Map>()))
}

/// True if a patch from `live` to `wanted` would change nothing: `3` and `3.0` are one number, and a null is an absent field.
pub(crate) fn is_unchanged(live: &Node, wanted: &Node) -> bool {
    merge_patch(live, wanted).is_none()
}

/// True if a patch of an absent field sets anything that a record keeps: nulls remove what is not there.
fn says_something(value: &Node) -> bool {
    match value {
        Node::Null => false,
        Node::Map(map) => map.is_empty() || map.iter().any(|(_, value)| says_something(value)),
        _ => true,
    }
}

/// JSON equality, where `3` and `3.0` are one number.
fn is_same(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Float(_), Node::Int(_)) | (Node::Int(_), Node::Float(_)) => {
            a.to_text() == b.to_text()
        }
        (Node::List(a), Node::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Node::Map(a), Node::Map(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| is_same(a, b)))
        }
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(text: &str) -> Node {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_patch_holds_what_differs_and_nothing_else() {
        let live = node(r#"{"a":1,"b":{"c":2,"d":3},"gone":1}"#);
        let wanted = node(r#"{"a":1,"b":{"c":2,"d":4},"new":[1]}"#);
        assert_eq!(
            merge_patch(&live, &wanted),
            Some(node(r#"{"b":{"d":4},"gone":null,"new":[1]}"#))
        );
        assert_eq!(merge_patch(&wanted, &wanted), None);
    }

    #[test]
    fn one_number_in_two_spellings_is_no_change() {
        assert_eq!(
            merge_patch(&node(r#"{"x":3}"#), &node(r#"{"x":3.0}"#)),
            None
        );
        assert_eq!(
            merge_patch(&node(r#"{"x":[{"y":3.0}]}"#), &node(r#"{"x":[{"y":3}]}"#)),
            None
        );
        assert!(merge_patch(&node(r#"{"x":3}"#), &node(r#"{"x":3.5}"#)).is_some());
        assert!(merge_patch(&node(r#"{"x":3}"#), &node(r#"{"x":"3"}"#)).is_some());
    }

    #[test]
    fn an_absent_field_that_shall_be_absent_is_no_change() {
        assert_eq!(merge_patch(&node("{}"), &node(r#"{"x":null}"#)), None);
        assert_eq!(merge_patch(&node("{}"), &node(r#"{"x":{"y":null}}"#)), None);
        assert_eq!(
            merge_patch(&node(r#"{"x":1}"#), &node(r#"{"x":null}"#)),
            Some(node(r#"{"x":null}"#))
        );
    }
}
