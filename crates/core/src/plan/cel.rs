//! Rules as CEL expressions.

use std::fmt::Write as _;

/// A rule as CEL says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CelRule {
    /// The expression, true if the rule is kept. It reads `object`, `oldObject` and `request.operation`.
    pub expression: Box<str>,
    /// The message, in which each part that CEL cannot say is `…`; without line breaks.
    pub message: Box<str>,
    /// The expression of the message, if it depends on the object and CEL can say all of it.
    pub message_expression: Option<Box<str>>,
}

/// Returns a text as a literal of CEL.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}
