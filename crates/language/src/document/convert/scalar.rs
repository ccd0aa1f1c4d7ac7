//! Writes single values as YAML.

use crate::tree::{Tree, TreeValue};

/// Words that YAML 1.1 or 1.2 does not read as text.
const WORDS: &[&str] = &[
    "true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf",
];

/// Writes a value that is neither a map nor a list. `was` is its previous text; its quotes are kept.
pub(crate) fn scalar(value: &Tree, was: &str) -> String {
    match &value.value {
        TreeValue::Str(text) if was.starts_with('\'') && !text.contains(['\'', '\n']) => {
            format!("'{text}'")
        }
        TreeValue::Str(text) if was.starts_with('"') => quoted(text),
        TreeValue::Str(text) => plain(text),
        _ => value.to_json().to_string(),
    }
}

/// Writes a text, without quotes where that is safe.
pub(crate) fn plain(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.', '/', ' '].contains(&c);
    let is_safe = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && !text.ends_with(' ')
        && text.chars().all(is_word)
        && !WORDS.contains(&text.to_ascii_lowercase().as_str());
    if is_safe {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// Writes a text in double quotes. YAML has the escapes of JSON.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_stay_and_come_where_they_must() {
        let text = |text: &str| Tree::new(TreeValue::Str(text.to_owned()));
        assert_eq!(scalar(&text("regex"), "'matches'"), "'regex'");
        assert_eq!(scalar(&text("regex"), "\"matches\""), "\"regex\"");
        assert_eq!(scalar(&text("regex"), "matches"), "regex");
        assert_eq!(scalar(&text("On"), "x"), "\"On\"");
        assert_eq!(scalar(&text("5"), "x"), "\"5\"");
        assert_eq!(scalar(&text("a: b"), ""), "\"a: b\"");
        assert_eq!(scalar(&Tree::new(TreeValue::Int(5)), "\"5\""), "5");
    }
}
