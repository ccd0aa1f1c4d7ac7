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
    /// The rule for writes of the subresource `scale`.
    pub on_scale: OnScale,
}

/// A rule and the subresource `scale`, whose requests have the number of replicas and no other field of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OnScale {
    /// The rule does not read the number of replicas, or the kind has no such subresource.
    #[default]
    Unaffected,
    /// This expresses the rule, whose `object` and `oldObject` are of the kind `Scale`.
    Rule(Box<CelRule>),
    /// The rule reads other fields too, or labels select the custom resources: only the webhook can evaluate it.
    Webhook,
}

/// Returns a text as a literal of CEL.
pub fn quoted(text: &str) -> String {
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
