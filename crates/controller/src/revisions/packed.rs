//! The stored form of a revision's data: as it is while it is small, else compressed and split. Pure.
//!
//! ```text
//!  data ── at most 512 KiB ───────────────────────────────────────► data
//!   └──── more ── JSON, gzip, base64 ── chunks of at most 896 KiB ──► head { packed, content }, parts { part, content }…
//! ```
//!
//! An object of the API server, and a request to etcd, may have about 1.5 MB. Any client may have written what is read:
//! unpacking is bounded.

use std::io::{Read as _, Write as _};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use flate2::{Compression, read::GzDecoder, write::GzEncoder};
use orkestra_object::value::{self, Node};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most bytes of JSON that are stored as they are.
const PLAIN_BYTES: usize = 512 << 10;
/// The most bytes of base64 in one object.
const CHUNK_BYTES: usize = 896 << 10;
/// The most objects of one revision.
pub(crate) const MOST_OBJECTS: usize = 8;
/// The most bytes of JSON that are compressed.
const MOST_BYTES: usize = 64 << 20;

/// The field of the data that says how the rest is packed.
const PACKED: &str = "packed";
/// The field of the data of a part that says what it belongs to.
const PART: &str = "part";
/// The field with a chunk of the content.
const CONTENT: &str = "content";
/// The only format.
const FORMAT: &str = "gzip";

/// How data is packed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Form {
    /// `gzip`: base64 of compressed JSON.
    format: String,
    /// The bytes of the JSON.
    bytes: usize,
    /// The hash of the data.
    hash: String,
    /// The number of further objects.
    parts: usize,
}

/// The place of a part.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ChunkPosition {
    /// The name of the object with the first chunk.
    pub(crate) of: String,
    /// Its number, from 1.
    pub(crate) number: usize,
}

/// Data in its stored form.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Packed {
    /// The data of the first object.
    pub(crate) head: Value,
    /// The content of the parts, in order.
    pub(crate) parts: Vec<String>,
}

/// A revision that is too large to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooLarge {
    /// Before it is compressed.
    #[error(
        "the revision with its sources and Motifs has {} MiB; at most {} MiB can be stored",
        .0.div_ceil(1 << 20), MOST_BYTES >> 20
    )]
    Plain(usize),
    /// Compressed.
    #[error(
        "the revision with its sources and Motifs has {} KiB when compressed; at most {} KiB can be stored",
        .0.div_ceil(1 << 10), (CHUNK_BYTES * MOST_OBJECTS) >> 10
    )]
    Compressed(usize),
}

impl Packed {
    /// Packs data.
    ///
    /// # Errors
    /// It is too large.
    pub(crate) fn of(data: &Value) -> Result<Self, TooLarge> {
        let text = data.to_string();
        if text.len() <= PLAIN_BYTES {
            return Ok(Self {
                head: data.clone(),
                parts: Vec::new(),
            });
        }
        if text.len() > MOST_BYTES {
            return Err(TooLarge::Plain(text.len()));
        }
        let mut content = BASE64_STANDARD.encode(compressed(&text));
        let most = CHUNK_BYTES * MOST_OBJECTS;
        if content.len() > most {
            return Err(TooLarge::Compressed(content.len()));
        }
        let mut parts = Vec::new();
        let mut rest = content.split_off(content.len().min(CHUNK_BYTES));
        while !rest.is_empty() {
            let next = rest.split_off(rest.len().min(CHUNK_BYTES));
            parts.push(std::mem::replace(&mut rest, next));
        }
        let form = Form {
            format: FORMAT.to_owned(),
            bytes: text.len(),
            hash: value::hash(&Node::from(data)),
            parts: parts.len(),
        };
        let head = json!({ PACKED: form, CONTENT: content });
        Ok(Self { head, parts })
    }

    /// Returns how many parts belong to the data of a first object.
    pub(crate) fn parts_of(head: &Value) -> usize {
        Form::of(head).map_or(0, |form| form.parts.min(MOST_OBJECTS - 1))
    }

    /// Returns the data; `None` if a part is missing or the content is not what was packed.
    pub(crate) fn unpack(&self) -> Option<Value> {
        let Some(form) = Form::of(&self.head) else {
            return Some(self.head.clone());
        };
        let is_known = form.format == FORMAT
            && form.bytes <= MOST_BYTES
            && form.parts == self.parts.len()
            && form.parts < MOST_OBJECTS;
        if !is_known {
            return None;
        }
        let mut content = self.head.get(CONTENT)?.as_str()?.to_owned();
        content.extend(self.parts.iter().map(String::as_str));
        let packed = BASE64_STANDARD.decode(content).ok()?;
        let mut text = Vec::new();
        let most = u64::try_from(form.bytes).ok()?;
        let mut reader = GzDecoder::new(&*packed).take(most + 1);
        reader.read_to_end(&mut text).ok()?;
        let data: Value = serde_json::from_slice(&text).ok()?;
        let is_same = text.len() == form.bytes && value::hash(&Node::from(&data)) == form.hash;
        is_same.then_some(data)
    }

    /// True if it holds this data.
    pub(crate) fn holds(&self, data: &Value) -> bool {
        match Form::of(&self.head) {
            Some(form) => {
                form.parts == self.parts.len() && form.hash == value::hash(&Node::from(data))
            }
            None => self.head == *data,
        }
    }
}

impl Form {
    fn of(head: &Value) -> Option<Self> {
        Self::deserialize(head.get(PACKED)?).ok()
    }
}

/// Returns the data of a part's object.
pub(crate) fn part(place: &ChunkPosition, content: &str) -> Value {
    json!({ PART: place, CONTENT: content })
}

/// Returns the place and the content of a part; `None` if it is none.
pub(crate) fn read_part(data: &Value) -> Option<(ChunkPosition, &str)> {
    let place = ChunkPosition::deserialize(data.get(PART)?).ok()?;
    Some((place, data.get(CONTENT)?.as_str()?))
}

fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    // Writing into memory does not fail.
    let _ = encoder.write_all(text.as_bytes());
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text of `bytes` bytes that hardly compresses: digits of hashes.
    fn noise(bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 32);
        let mut last = "reeds".to_owned();
        while text.len() < bytes {
            last = value::hash_text(&last);
            text.push_str(&last);
        }
        text.truncate(bytes);
        text
    }

    fn sample(text: &str) -> Value {
        json!({ "kind": "Komposer", "artifacts": { "oci://harbour.example/k/reeds:v1": { "documents": [{ "text": text }] } } })
    }

    fn packed(bytes: usize) -> (Value, Packed) {
        let data = sample(&noise(bytes));
        let packed = Packed::of(&data).unwrap();
        (data, packed)
    }

    #[test]
    fn small_data_is_stored_as_it_is() {
        let data = sample("pond: 3");
        let packed = Packed::of(&data).unwrap();
        assert_eq!(packed.head, data);
        assert!(packed.parts.is_empty() && packed.holds(&data));
        assert_eq!(packed.unpack(), Some(data));
    }

    #[test]
    fn large_data_is_compressed_and_split_and_each_object_is_small_enough() {
        for (bytes, parts) in [(600 << 10, 0), (3 << 20, 2), (8 << 20, 6)] {
            let (data, packed) = packed(bytes);
            assert_eq!(packed.parts.len(), parts, "{bytes}");
            assert_eq!(Packed::parts_of(&packed.head), parts);
            let head = packed.head.to_string().len();
            let longest = packed
                .parts
                .iter()
                .map(String::len)
                .max()
                .unwrap_or(0)
                .max(head);
            assert!(longest < 1_000_000, "{bytes}: {longest}");
            assert!(packed.holds(&data) && !packed.holds(&sample("")));
            assert_eq!(packed.unpack(), Some(data));
        }
        // A text like a real Katalog compresses to a tenth or less, so one object is enough.
        let data = sample(&"spec:\n  crds:\n    pond: {workers: 3}\n".repeat(100_000));
        let packed = Packed::of(&data).unwrap();
        assert!(packed.parts.is_empty());
        assert_eq!(packed.unpack(), Some(data));
    }

    #[test]
    fn data_that_is_too_large_even_then_is_refused_with_its_size() {
        let compressed = Packed::of(&sample(&noise(16 << 20))).unwrap_err();
        assert!(
            matches!(compressed, TooLarge::Compressed(_)),
            "{compressed}"
        );
        let message = compressed.to_string();
        assert!(
            message.contains("KiB when compressed; at most 7168 KiB can be stored"),
            "{message}"
        );
        let plain = Packed::of(&sample(&"x".repeat(65 << 20))).unwrap_err();
        let expected =
            "the revision with its sources and Motifs has 66 MiB; at most 64 MiB can be stored";
        assert_eq!(plain.to_string(), expected);
    }

    #[test]
    fn a_missing_part_changed_content_and_a_bomb_are_not_read() {
        let (_, whole) = packed(3 << 20);
        let mut lacks = whole.clone();
        lacks.parts.pop();
        assert_eq!(lacks.unpack(), None);
        let mut swapped = whole.clone();
        swapped.parts.reverse();
        assert_eq!(swapped.unpack(), None);
        let mut other = whole.clone();
        other.head[PACKED]["hash"] = json!("00");
        assert_eq!(other.unpack(), None);
        let mut form = whole.clone();
        form.head[PACKED]["format"] = json!("zstd");
        assert_eq!(form.unpack(), None);

        // The stated size is smaller than the content, or larger than the content or the limit.
        let bomb = BASE64_STANDARD.encode(compressed(&" ".repeat(30 << 20)));
        for (bytes, content) in [
            (70_usize, &bomb),
            (MOST_BYTES + 1, &bomb),
            (40 << 20, &String::new()),
        ] {
            let form = json!({ "format": FORMAT, "bytes": bytes, "hash": "00", "parts": 0 });
            let head = json!({ PACKED: form, CONTENT: content });
            let parts = Vec::new();
            assert_eq!(Packed { head, parts }.unpack(), None, "{bytes}");
        }
    }

    #[test]
    fn a_part_names_its_place() {
        let place = ChunkPosition {
            of: "reeds-7".to_owned(),
            number: 2,
        };
        let data = part(&place, "abc");
        assert_eq!(read_part(&data), Some((place, "abc")));
        assert_eq!(read_part(&sample("pond: 3")), None);
    }
}
