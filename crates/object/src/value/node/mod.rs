//! One value of an object tree.

pub(crate) mod map;
pub(crate) mod serde;

use std::borrow::Cow;

use ::serde::Serialize;
use compact_str::CompactString;

use super::{Key, Map, Path, PathStep, PlainNumbers};

/// The prefix of the error for a key that occurs twice.
pub(crate) const DUPLICATE: &str = "duplicate key";

/// A value of JSON, with exact integers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Node {
    /// `null`, also the result of reading a missing value.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits in a signed 64-bit integer.
    Int(i64),
    /// An integer above [`i64::MAX`]; smaller ones are always [`Node::Int`].
    UInt(u64),
    /// Any other number.
    Float(f64),
    /// Text; up to 24 bytes are stored inline.
    Str(CompactString),
    /// A list.
    List(Box<[Node]>),
    /// A map.
    Map(Map),
}

impl Node {
    /// Returns a map of the given fields.
    pub fn object<const N: usize>(fields: [(&str, Node); N]) -> Node {
        Node::Map(
            fields
                .into_iter()
                .map(|(key, value)| (Key::new(key), value))
                .collect(),
        )
    }

    /// Returns the value of a key; `None` if this is not a map.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.get(key)
    }

    /// Returns `metadata.<field>` of an object.
    pub fn meta(&self, field: &str) -> Option<&Node> {
        self.get("metadata")?.get(field)
    }

    /// Returns `metadata.<field>` of an object, if it is text.
    pub fn meta_text(&self, field: &str) -> Option<&str> {
        self.meta(field)?.as_str()
    }

    /// Returns the label of an object.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.meta("labels")?.get(name)?.as_str()
    }

    /// Returns the annotation of an object.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.meta("annotations")?.get(name)?.as_str()
    }

    /// Returns the value at a path; `None` if a step leads nowhere. The empty path is the node itself.
    ///
    /// A field step that is a number addresses an item if the node is a list.
    pub fn at(&self, path: &Path) -> Option<&Node> {
        path.steps()
            .iter()
            .try_fold(self, |node, step| node.step(step))
    }

    pub(crate) fn step(&self, step: &PathStep) -> Option<&Node> {
        match (self, step) {
            (Node::Map(map), PathStep::Field(key)) => map.get(key),
            (Node::List(items), step) => items.get(step.index()?),
            _ => None,
        }
    }

    /// Returns the text, if this is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Node::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if this is a [`Node::Int`]; floats are never converted.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Node::Int(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Node::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Returns the items, if this is a list.
    pub fn as_list(&self) -> Option<&[Node]> {
        match self {
            Node::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the map, if this is one.
    pub fn as_map(&self) -> Option<&Map> {
        match self {
            Node::Map(map) => Some(map),
            _ => None,
        }
    }

    /// True if a condition treats this as false: null, false, 0, empty text, list or map.
    ///
    /// Source: Go's text/template, "Actions" (the empty values).
    pub fn is_empty_value(&self) -> bool {
        match self {
            Node::Null => true,
            Node::Bool(b) => !b,
            Node::Int(n) => *n == 0,
            Node::UInt(n) => *n == 0,
            Node::Float(n) => *n == 0.0,
            Node::Str(text) => text.is_empty(),
            Node::List(items) => items.is_empty(),
            Node::Map(map) => map.is_empty(),
        }
    }

    /// Returns the value as text for a text field, such as the data of a `ConfigMap`.
    ///
    /// Null is empty, text is unchanged, numbers are exact and without exponents, lists and maps are compact JSON.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Node::Null => Cow::Borrowed(""),
            Node::Bool(true) => Cow::Borrowed("true"),
            Node::Bool(false) => Cow::Borrowed("false"),
            Node::Int(n) => Cow::Owned(n.to_string()),
            Node::UInt(n) => Cow::Owned(n.to_string()),
            Node::Float(n) => Cow::Owned(float_text(*n)),
            Node::Str(text) => Cow::Borrowed(text),
            Node::List(_) | Node::Map(_) => Cow::Owned(json_text(self)),
        }
    }

    /// Returns the type's name for messages: `null`, `boolean`, `integer`, `number`, `text`, `list` or `map`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Node::Null => "null",
            Node::Bool(_) => "boolean",
            Node::Int(_) | Node::UInt(_) => "integer",
            Node::Float(_) => "number",
            Node::Str(_) => "text",
            Node::List(_) => "list",
            Node::Map(_) => "map",
        }
    }

    /// Returns the bytes on the heap, without shared keys and allocator overhead.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Node::Str(text) if text.is_heap_allocated() => text.capacity(),
            Node::List(items) => {
                size_of_val::<[Node]>(items) + items.iter().map(Node::heap_bytes).sum::<usize>()
            }
            Node::Map(map) => map
                .iter()
                .map(|(_, node)| size_of::<(Key, Node)>() + node.heap_bytes())
                .sum(),
            _ => 0,
        }
    }
}

/// Formats compact JSON, with numbers as in text.
fn json_text(node: &Node) -> String {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, PlainNumbers);
    // Never an error: writing to memory cannot fail, and every node can be represented in JSON.
    let written = node.serialize(&mut serializer);
    written.map_or_else(
        |_| String::new(),
        |()| String::from_utf8(out).unwrap_or_default(),
    )
}

/// Formats the shortest decimal digits that parse to the same number, without an exponent.
pub fn float_text(n: f64) -> String {
    if n.is_infinite() {
        return String::from(if n > 0.0 { "+Inf" } else { "-Inf" });
    }
    n.to_string()
}

impl From<&str> for Node {
    fn from(text: &str) -> Node {
        Node::Str(text.into())
    }
}

impl From<String> for Node {
    fn from(text: String) -> Node {
        let mut text = CompactString::from(text);
        // The text is kept for a long time.
        text.shrink_to_fit();
        Node::Str(text)
    }
}

impl From<i64> for Node {
    fn from(n: i64) -> Node {
        Node::Int(n)
    }
}

impl From<u64> for Node {
    fn from(n: u64) -> Node {
        i64::try_from(n).map_or(Node::UInt(n), Node::Int)
    }
}

impl From<f64> for Node {
    fn from(n: f64) -> Node {
        Node::Float(n)
    }
}

impl From<bool> for Node {
    fn from(b: bool) -> Node {
        Node::Bool(b)
    }
}

impl From<Vec<Node>> for Node {
    fn from(items: Vec<Node>) -> Node {
        Node::List(items.into_boxed_slice())
    }
}

impl From<Map> for Node {
    fn from(map: Map) -> Node {
        Node::Map(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_node_takes_24_bytes() {
        assert!(size_of::<Node>() <= 24);
        assert_eq!(size_of::<Key>(), 16);
    }

    #[test]
    fn numbers_print_exact_and_without_exponent() {
        let cases = [
            (Node::Int(i64::MIN), "-9223372036854775808"),
            (Node::UInt(u64::MAX), "18446744073709551615"),
            (Node::Float(1e6), "1000000"),
            (Node::Float(1e21), "1000000000000000000000"),
            (Node::Float(0.1), "0.1"),
            (Node::Float(3.0), "3"),
            (Node::Float(1.5e-7), "0.00000015"),
        ];
        for (node, text) in cases {
            assert_eq!(node.to_text(), text);
            assert_eq!(Node::from(vec![node]).to_text(), format!("[{text}]"));
        }
        let none = Node::from(vec![Node::Float(f64::NAN), Node::Float(f64::INFINITY)]);
        assert_eq!(none.to_text(), "[null,null]");
    }

    #[test]
    fn null_is_empty_text_and_trees_are_compact_json() {
        assert_eq!(Node::Null.to_text(), "");
        let tree = Node::from(&json!({"b": [1, null, "x"], "a": true}));
        assert_eq!(tree.to_text(), r#"{"a":true,"b":[1,null,"x"]}"#);
    }

    #[test]
    fn emptiness_is_that_of_go() {
        for empty in [
            json!(null),
            json!(false),
            json!(0),
            json!(0.0),
            json!(""),
            json!([]),
            json!({}),
        ] {
            assert!(Node::from(&empty).is_empty_value(), "{empty}");
        }
        for full in [
            json!(true),
            json!(-1),
            json!(0.5),
            json!("false"),
            json!([null]),
            json!({"a": null}),
        ] {
            assert!(!Node::from(&full).is_empty_value(), "{full}");
        }
    }

    #[test]
    fn a_numeric_field_addresses_an_item_of_a_list_and_a_key_of_a_map() {
        let node = Node::from(&json!({"l": [{"n": 7}], "m": {"0": {"n": 8}}}));
        let at = |path: &str| node.at(&Path::parse(path).unwrap()).and_then(Node::as_i64);
        assert_eq!(at("l.0.n"), Some(7));
        assert_eq!(at("l[0].n"), Some(7));
        assert_eq!(at("m.0.n"), Some(8));
        assert_eq!(at("l.1.n"), None);
        assert_eq!(at("l.n"), None);
        assert_eq!(at("m.0.n.deeper"), None);
    }
}
