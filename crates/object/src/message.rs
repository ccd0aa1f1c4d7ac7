//! Messages of conditions and errors, in the length that Kubernetes stores.

/// Longest message of a condition, in bytes. Source: Kubernetes, `metav1.Condition`.
pub const MESSAGE_BYTES: usize = 32_768;

/// Cuts a message to [`MESSAGE_BYTES`], between characters; what was cut shows as `...`.
pub fn cut_message(message: &str) -> String {
    cut(message, MESSAGE_BYTES)
}

/// Cuts a text to so many bytes, between characters; what was cut shows as `...`.
pub fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes.saturating_sub(3));
    format!("{}...", &text[..end])
}
