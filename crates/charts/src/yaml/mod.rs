//! Reads YAML like `sigs.k8s.io/yaml`, and writes scalars like that.

mod resolve;
mod scalar;

use std::collections::BTreeMap;
use std::fmt;

use orkestra_object::value::{Key, Map, Node};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

pub(crate) use scalar::{float, inline, scalar, shortest};

/// The maximum nesting of lists and maps.
const MAX_DEPTH: usize = 64;
/// The maximum number of values that aliases expand to, in total.
const MAX_REPLAYED: usize = 100_000;
/// Parses a text with one document; null if there is none.
///
/// # Errors
/// The error of the parser.
pub(crate) fn read(text: &str) -> Result<Node, String> {
    let blank = |line: &str| {
        let line = line.trim();
        line.is_empty() || line.starts_with('#') || line == "---"
    };
    if text.lines().all(blank) {
        return Ok(Node::Null);
    }
    let options = serde_saphyr::options! {
        legacy_octal_numbers: true,
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins,
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            flow_nesting_limit: MAX_DEPTH,
            enforce_alias_anchor_ratio: false,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: MAX_REPLAYED,
            max_replay_stack_depth: 16,
        },
    };
    serde_saphyr::from_str_with_options::<Document>(text, options)
        .map(|document| document.0)
        .map_err(|error| error.to_string())
}

/// A value whose keys may be of any type, as in YAML: `on: 1` has the key `true`.
struct Document(Node);

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Document, D::Error> {
        source.deserialize_any(DocumentVisitor)
    }
}

struct DocumentVisitor;

impl<'de> Visitor<'de> for DocumentVisitor {
    type Value = Document;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E>(self, b: bool) -> Result<Document, E> {
        Ok(Document(Node::Bool(b)))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Document, E> {
        Ok(Document(Node::Int(n)))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Document, E> {
        Ok(Document(Node::from(n)))
    }

    #[expect(clippy::cast_precision_loss, reason = "as encoding/json does")]
    fn visit_i128<E>(self, n: i128) -> Result<Document, E> {
        Ok(Document(Node::Float(n as f64)))
    }

    #[expect(clippy::cast_precision_loss, reason = "as encoding/json does")]
    fn visit_u128<E>(self, n: u128) -> Result<Document, E> {
        Ok(Document(Node::Float(n as f64)))
    }

    fn visit_f64<E>(self, n: f64) -> Result<Document, E> {
        Ok(Document(Node::Float(n)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Document, E> {
        Ok(Document(Node::from(text)))
    }

    fn visit_unit<E>(self) -> Result<Document, E> {
        Ok(Document(Node::Null))
    }

    fn visit_none<E>(self) -> Result<Document, E> {
        Ok(Document(Node::Null))
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Document, D::Error> {
        source.deserialize_any(DocumentVisitor)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, source: D) -> Result<Document, D::Error> {
        source.deserialize_any(DocumentVisitor)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Document, A::Error> {
        let mut items = Vec::new();
        while let Some(Document(item)) = source.next_element()? {
            items.push(item);
        }
        Ok(Document(Node::from(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Document, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(Document(key)) = source.next_key()? {
            let Some(key) = scalar_text(&key) else {
                return Err(A::Error::custom("a key is a list, a map or null"));
            };
            let Document(value) = source.next_value()?;
            entries.insert(key, value);
        }
        let entries = entries
            .into_iter()
            .map(|(key, value)| (Key::new(&key), value));
        Ok(Document(Node::Map(entries.collect::<Map>())))
    }
}

/// Converts a scalar to text where only text is valid: `1.10` to `1.1`, `on` to `true`.
///
/// Source: sigs.k8s.io/yaml, `convertToJSONableObject`.
pub(crate) fn scalar_text(node: &Node) -> Option<String> {
    match node {
        Node::List(_) | Node::Map(_) | Node::Null => None,
        Node::Float(n) => Some(shortest(*n)),
        node => Some(node.to_text().into_owned()),
    }
}
