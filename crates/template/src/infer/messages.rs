//! Messages about impossible fields and values.

use orkestra_language::diagnostics::did_you_mean;
use orkestra_language::schema::{NO_FIELDS, NoField};
use orkestra_object::value::Node;

/// The maximum number of fields in a hint.
const MOST_LISTED: usize = 8;

/// The message and hint for a field that a value cannot have.
pub fn explain_no_field(key: &str, no_field: &NoField<'_>) -> (String, Option<String>) {
    let NoField { within, fields } = no_field;
    if fields.is_empty() {
        let hint = (within == NO_FIELDS).then(|| {
            "the API server drops fields that a schema does not describe: add the field to the definition".to_owned()
        });
        let message = format!("there is no `{key}` in a value of type {within}");
        return (message, hint);
    }
    let message = format!("the schema has no `{key}` here");
    let hint = did_you_mean(key, fields.iter().copied()).unwrap_or_else(|| listed(fields));
    (message, Some(hint))
}

/// The first of the fields, as text.
fn listed(fields: &[&str]) -> String {
    let listed: Vec<String> = fields
        .iter()
        .take(MOST_LISTED)
        .map(|name| format!("`{name}`"))
        .collect();
    let more = if fields.len() > MOST_LISTED {
        " and others"
    } else {
        ""
    };
    format!("known fields: {}{more}", listed.join(", "))
}

/// The message and hint for a value that is not in the enum of a schema.
pub fn explain_word(node: &Node, words: &[Node]) -> (String, Option<String>) {
    let texts: Vec<_> = words.iter().map(Node::to_text).collect();
    let text = node.to_text();
    let message = format!("`{text}` is none of {}", texts.join(", "));
    let hint = node
        .as_str()
        .and_then(|word| did_you_mean(word, texts.iter().map(|known| &**known)));
    (message, hint)
}
