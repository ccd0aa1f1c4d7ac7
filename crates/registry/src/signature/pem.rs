//! PEM blocks. Source: RFC 7468.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The maximum length of a text, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Returns the first block of a text: its label and its content.
pub(crate) fn read(text: &str) -> Option<(&str, Vec<u8>)> {
    if text.len() > MOST_BYTES {
        return None;
    }
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    Some((label, STANDARD.decode(body).ok()?))
}

/// Returns all blocks of a text of at most `most` bytes: their labels and contents; none if one is not valid.
pub(crate) fn read_all(text: &str, most: usize) -> Option<Vec<(&str, Vec<u8>)>> {
    if text.len() > most {
        return None;
    }
    let mut blocks = Vec::new();
    let mut rest = text;
    while let Some((_, begun)) = rest.split_once("-----BEGIN ") {
        let (label, content) = begun.split_once("-----")?;
        let (body, after) = content.split_once("-----END ")?;
        rest = after.strip_prefix(label)?.strip_prefix("-----")?;
        let body: String = body.split_whitespace().collect();
        blocks.push((label, STANDARD.decode(body).ok()?));
    }
    Some(blocks)
}
