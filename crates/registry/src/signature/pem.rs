//! PEM blocks. Source: RFC 7468.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// The maximum length of a text, in bytes.
const MOST_BYTES: usize = 64 * 1024;

/// Returns the first block of a text: its label and its content.
pub(super) fn read(text: &str) -> Option<(&str, Vec<u8>)> {
    if text.len() > MOST_BYTES {
        return None;
    }
    let (_, rest) = text.split_once("-----BEGIN ")?;
    let (label, rest) = rest.split_once("-----")?;
    let (body, _) = rest.split_once(&format!("-----END {label}-----"))?;
    let body: String = body.split_whitespace().collect();
    Some((label, STANDARD.decode(body).ok()?))
}
