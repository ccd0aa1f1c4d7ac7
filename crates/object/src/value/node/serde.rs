//! Conversion of nodes to and from every serde format, and to and from `serde_json` values.
//!
//! The format limits the depth of the input: `serde_json` stops at 128 levels.

use std::{fmt, io};

use serde::de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use smallvec::SmallVec;

use super::{DUPLICATE, float_text};
use crate::value::{Key, Map, Node};

/// The number of items or fields that most lists and maps do not exceed: these are read without an oversized allocation.
pub(crate) const USUAL: usize = 8;

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl Serialize for Node {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Node::Null => serializer.serialize_unit(),
            Node::Bool(b) => serializer.serialize_bool(*b),
            Node::Int(n) => serializer.serialize_i64(*n),
            Node::UInt(n) => serializer.serialize_u64(*n),
            Node::Float(n) => serializer.serialize_f64(*n),
            Node::Str(text) => serializer.serialize_str(text),
            Node::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(item)?;
                }
                list.end()
            }
            Node::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries.iter() {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

/// Returns a list without excess capacity.
pub(crate) fn list_of(items: SmallVec<[Node; USUAL]>) -> Node {
    let mut list = Vec::with_capacity(items.len());
    list.extend(items);
    Node::List(list.into_boxed_slice())
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
        Ok(Key::new(text))
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<Key, E> {
        Ok(Key::new(if b { "true" } else { "false" }))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Key, E> {
        Ok(Key::from(n.to_string()))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Key, E> {
        Ok(Key::from(n.to_string()))
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Reads a value without duplicate keys.
pub(crate) struct Exact;

impl<'de> DeserializeSeed<'de> for Exact {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor { exact: true })
    }
}

#[derive(Clone, Copy)]
struct NodeVisitor {
    /// Whether a duplicate key is an error. Otherwise the last value is used.
    exact: bool,
}

impl<'de> DeserializeSeed<'de> for NodeVisitor {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeVisitor {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Node, E> {
        Ok(Node::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E: Error>(self, b: bool) -> Result<Node, E> {
        Ok(Node::Bool(b))
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<Node, E> {
        Ok(Node::Int(n))
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<Node, E> {
        Ok(Node::from(n))
    }

    fn visit_f64<E: Error>(self, n: f64) -> Result<Node, E> {
        Ok(Node::Float(n))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Node, E> {
        Ok(Node::from(text))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Node, E> {
        Ok(Node::from(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node, A::Error> {
        let mut items = SmallVec::<[Node; USUAL]>::new();
        while let Some(item) = list.next_element_seed(self)? {
            items.push(item);
        }
        Ok(list_of(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let mut entries = SmallVec::<[(Key, Node); USUAL]>::new();
        while let Some(key) = map.next_key::<Key>()? {
            entries.push((key, map.next_value_seed(self)?));
        }
        let count = entries.len();
        let map: Map = entries.into_iter().collect();
        if self.exact && map.len() < count {
            return Err(A::Error::custom(DUPLICATE));
        }
        Ok(Node::Map(map))
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(NodeVisitor { exact: false })
    }
}

impl From<&serde_json::Value> for Node {
    fn from(value: &serde_json::Value) -> Node {
        use serde_json::Value;
        match value {
            Value::Null => Node::Null,
            Value::Bool(b) => Node::Bool(*b),
            Value::Number(n) => n
                .as_i64()
                .map(Node::Int)
                .or_else(|| n.as_u64().map(Node::UInt))
                .or_else(|| n.as_f64().map(Node::Float))
                .unwrap_or_default(),
            Value::String(text) => Node::from(text.as_str()),
            Value::Array(items) => Node::List(items.iter().map(Node::from).collect()),
            Value::Object(entries) => Node::Map(
                entries
                    .iter()
                    .map(|(key, value)| (Key::new(key), Node::from(value)))
                    .collect(),
            ),
        }
    }
}

impl Node {
    /// Converts the value to `serde_json`. Floats that JSON cannot represent (NaN, infinite) are null.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value;
        match self {
            Node::Null => Value::Null,
            Node::Bool(b) => Value::from(*b),
            Node::Int(n) => Value::from(*n),
            Node::UInt(n) => Value::from(*n),
            Node::Float(n) => Value::from(*n),
            Node::Str(text) => Value::from(&**text),
            Node::List(items) => Value::Array(items.iter().map(Node::to_json).collect()),
            Node::Map(map) => Value::Object(
                map.iter()
                    .map(|(key, value)| (key.to_string(), value.to_json()))
                    .collect(),
            ),
        }
    }
}

/// Compact JSON with floats formatted as in text, `1000000` and never `1000000.0` or `1e+21`; for
/// [`serde_json::Serializer::with_formatter`].
pub struct PlainNumbers;

impl serde_json::ser::Formatter for PlainNumbers {
    fn write_f64<W: io::Write + ?Sized>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        writer.write_all(float_text(value).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const TEXT: &str =
        r#"{"a":null,"b":[true,-1,9223372036854775807,18446744073709551615,1.5],"c":{"d":"é\n"}}"#;

    #[test]
    fn json_text_makes_the_round_trip_byte_for_byte() {
        let node: Node = serde_json::from_str(TEXT).unwrap();
        assert_eq!(serde_json::to_string(&node).unwrap(), TEXT);
    }

    #[test]
    fn reading_text_and_converting_a_value_agree() {
        let node: Node = serde_json::from_str(TEXT).unwrap();
        let value: serde_json::Value = serde_json::from_str(TEXT).unwrap();
        assert_eq!(Node::from(&value), node);
        assert_eq!(node.to_json(), value);
    }

    #[test]
    fn integers_stay_exact_and_only_large_ones_are_unsigned() {
        let node: Node = serde_json::from_str("[9223372036854775807,9223372036854775808]").unwrap();
        assert_eq!(
            node.as_list().unwrap(),
            [Node::Int(i64::MAX), Node::UInt(1 << 63)]
        );
    }

    #[test]
    fn yaml_reads_too_and_keys_that_are_numbers_become_text() {
        let node: Node = serde_saphyr::from_str("a: ~\n1: [x, 2, 0.5]\ntrue: yes\n").unwrap();
        assert_eq!(node.get("a"), Some(&Node::Null));
        assert_eq!(node.get("1").map(Node::to_json), Some(json!(["x", 2, 0.5])));
        assert!(node.get("true").is_some());
    }

    #[test]
    fn nesting_beyond_the_format_s_limit_is_an_error() {
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(serde_json::from_str::<Node>(&deep).is_err());
    }
}
