//! Canonical hashes.

use sha2::{Digest, Sha256};

use super::Node;

/// The hash of a tree: 32 lower-case hex characters, the first half of a SHA-256.
///
/// Independent of key order; equal numbers have equal hashes in every variant, so an object keeps its hash on a round trip
/// through JSON. Text and numbers differ.
///
/// The input of the hash is a prefix code: a tag for the type, a length if needed, then the content.
pub fn hash(node: &Node) -> String {
    let mut digest = Sha256::new();
    feed(&mut digest, node);
    half_of(digest)
}

/// The hash of a text: 32 lower-case hex characters, the first half of the SHA-256 of its bytes.
pub fn hash_text(text: &str) -> String {
    let mut digest = Sha256::new();
    digest.update(text);
    half_of(digest)
}

/// Returns the lower-case hexadecimal digits of `bytes`, two for each.
pub fn hex_digits(bytes: &[u8]) -> impl Iterator<Item = u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves.map(|half| DIGITS[usize::from(half)])
}

fn feed(digest: &mut Sha256, node: &Node) {
    match node {
        Node::Null => digest.update("n"),
        Node::Bool(b) => digest.update(if *b { "t" } else { "f" }),
        Node::Int(n) => feed_integer(digest, i128::from(*n)),
        Node::UInt(n) => feed_integer(digest, i128::from(*n)),
        Node::Float(n) => match as_integer(*n) {
            Some(whole) => feed_integer(digest, whole),
            None => feed_float(digest, *n),
        },
        Node::Str(text) => feed_text(digest, b"s", text),
        Node::List(items) => {
            feed_length(digest, b"l", items.len());
            items.iter().for_each(|item| feed(digest, item));
        }
        Node::Map(map) => {
            feed_length(digest, b"m", map.len());
            for (key, value) in map.iter() {
                feed_text(digest, b"k", key);
                feed(digest, value);
            }
        }
    }
}

/// Returns the integer that a float equals, if an integer variant can hold it.
fn as_integer(n: f64) -> Option<i128> {
    const LOWEST: f64 = -9_223_372_036_854_775_808.0; // -2^63
    const BEYOND: f64 = 18_446_744_073_709_551_616.0; // 2^64
    let fits = n.fract() == 0.0 && (LOWEST..BEYOND).contains(&n);
    #[expect(clippy::cast_possible_truncation, reason = "whole and in range")]
    fits.then_some(n as i128)
}

fn feed_integer(digest: &mut Sha256, n: i128) {
    digest.update("i");
    digest.update(n.to_be_bytes());
}

fn feed_float(digest: &mut Sha256, n: f64) {
    // All NaNs have the same hash.
    let n = if n.is_nan() { f64::NAN } else { n };
    digest.update("d");
    digest.update(n.to_be_bytes());
}

fn feed_length(digest: &mut Sha256, tag: &[u8], length: usize) {
    digest.update(tag);
    digest.update((length as u64).to_be_bytes());
}

fn feed_text(digest: &mut Sha256, tag: &[u8], text: &str) {
    feed_length(digest, tag, text.len());
    digest.update(text);
}

fn half_of(digest: Sha256) -> String {
    let hash = digest.finalize();
    hex_digits(&hash).take(32).map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(value: &serde_json::Value) -> String {
        hash(&Node::from(value))
    }

    #[test]
    fn key_order_does_not_matter() {
        let one: serde_json::Value = serde_json::from_str(r#"{"a":1,"b":{"c":2,"d":3}}"#).unwrap();
        let two: serde_json::Value = serde_json::from_str(r#"{"b":{"d":3,"c":2},"a":1}"#).unwrap();
        assert_eq!(of(&one), of(&two));
    }

    #[test]
    fn equal_numbers_hash_alike_whatever_holds_them() {
        assert_eq!(hash(&Node::Int(3)), hash(&Node::Float(3.0)));
        assert_eq!(hash(&Node::Int(0)), hash(&Node::Float(-0.0)));
        assert_eq!(
            hash(&Node::UInt(1 << 63)),
            hash(&Node::Float(9_223_372_036_854_775_808.0))
        );
        assert_ne!(
            hash(&Node::Int((1 << 53) + 1)),
            hash(&Node::Float(9_007_199_254_740_992.0))
        );
        assert_ne!(hash(&Node::Float(0.5)), hash(&Node::Float(0.25)));
    }

    #[test]
    fn values_that_look_alike_differ() {
        let values = [
            json!(null),
            json!(""),
            json!("null"),
            json!(1),
            json!("1"),
            json!(true),
            json!("true"),
            json!([]),
            json!({}),
            json!([[]]),
            json!([1, [2]]),
            json!([[1], 2]),
            json!(["ab"]),
            json!(["a", "b"]),
            json!({"a": "b"}),
            json!(["a", ["b"]]),
        ];
        let hashes: std::collections::BTreeSet<String> = values.iter().map(of).collect();
        assert_eq!(hashes.len(), values.len());
    }

    #[test]
    fn a_hash_is_half_a_sha256_in_hex() {
        // printf hello | sha256sum
        assert_eq!(hash_text("hello"), "2cf24dba5fb0a30e26e83b2ac5b9e29e");
        let hash = of(&json!({"a": 1}));
        assert_eq!(hash.len(), 32);
        assert!(
            hash.bytes()
                .all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase())
        );
    }
}
