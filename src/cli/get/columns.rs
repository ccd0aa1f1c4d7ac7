//! Custom columns: `TITLE:PATH`, with paths as in kubectl.
//!
//! kubectl's paths are older than JSONPath's standard: a leading `$` is optional, braces may be around the path, and keys may have
//! escaped dots and any other character. They are translated, and evaluated as RFC 9535 says.

use jsonpath_rust::{
    parser::{model::JpQuery, parse_json_path},
    query::{QueryRef, js_path_process},
};
use serde_json::Value;

use super::output;

/// What kubectl prints for a missing value.
const NONE: &str = "<none>";

/// A column of the caller's choice.
#[derive(Clone, Debug)]
pub(super) struct CustomColumn {
    title: String,
    path: JpQuery,
}

impl CustomColumn {
    pub(super) fn title(&self) -> String {
        output::cell(&self.title)
    }

    /// Returns the values at the path, separated by commas.
    pub(super) fn cell(&self, document: &Value) -> String {
        // A path that does not fit the document has no values.
        let values = js_path_process(&self.path, document).unwrap_or_default();
        let values = values.into_iter().map(QueryRef::val);
        let values = values.map(|value| match value {
            Value::String(text) => output::cell(text),
            other => output::cell(&other.to_string()),
        });
        let values: Vec<String> = values.collect();
        if values.is_empty() {
            NONE.to_owned()
        } else {
            values.join(",")
        }
    }
}

/// Parses columns that are separated by commas.
pub(super) fn custom_columns(text: &str) -> Result<Vec<CustomColumn>, String> {
    let parsed = separated(text).into_iter().map(|column| {
        let Some((title, path)) = column.split_once(':') else {
            return Err(format!("`{column}` is not a column: expected TITLE:PATH"));
        };
        let standard = standard(path);
        let parsed = parse_json_path(&standard);
        let path = parsed.map_err(|error| format!("`{path}` is not a path: {error}"))?;
        Ok(CustomColumn {
            title: title.to_owned(),
            path,
        })
    });
    parsed.collect()
}

/// Splits a text at commas outside of brackets and quotes.
fn separated(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (character, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(character),
            ('[' | '(' | '{', None) => depth += 1,
            (']' | ')' | '}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// Translates a path of kubectl.
fn standard(path: &str) -> String {
    let path = path.trim();
    let inner = path
        .strip_prefix('{')
        .and_then(|path| path.strip_suffix('}'));
    let path = inner.unwrap_or(path);
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut out = String::from("$");
    while let Some(first) = rest.chars().next() {
        match first {
            '[' => {
                let end = bracket(rest);
                out.push_str(&rest[..end]);
                rest = &rest[end..];
            }
            '.' if rest.starts_with("..") => {
                out.push_str("..");
                rest = &rest[2..];
                rest = key(rest, &mut out);
            }
            '.' => rest = key(&rest[1..], &mut out),
            _ => rest = key(rest, &mut out),
        }
    }
    out
}

/// Returns the length of the bracket that a text begins with.
fn bracket(text: &str) -> usize {
    let (mut depth, mut quote) = (0_usize, None);
    for (at, character) in text.char_indices() {
        match (character, quote) {
            (c, Some(open)) if c == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(character),
            ('[', None) => depth += 1,
            (']', None) => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

/// Writes the key that a text begins with as a step, and returns the rest.
fn key<'t>(text: &'t str, out: &mut String) -> &'t str {
    let mut name = String::new();
    let mut characters = text.char_indices();
    let mut end = text.len();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => {
                end = at;
                break;
            }
            other => name.push(other),
        }
    }
    match &*name {
        "" => {}
        "*" => out.push_str("[*]"),
        name => {
            out.push_str("['");
            out.push_str(&name.replace('\\', "\\\\").replace('\'', "\\'"));
            out.push_str("']");
        }
    }
    &text[end..]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn columns_have_the_paths_of_kubectl() {
        let document = json!({
            "metadata": { "name": "north", "labels": { "app.kubernetes.io/name": "pond", "tier": "gold" } },
            "spec": { "depth": 3, "inlets": [{ "name": "a" }, { "name": "b" }] },
            "status": { "conditions": [{ "type": "Stalled", "status": "False" }, { "type": "Ready", "status": "True" }] }
        });
        for (path, expected) in [
            (".metadata.name", "north"),
            ("metadata.name", "north"),
            ("{.metadata.name}", "north"),
            ("$.spec.depth", "3"),
            (".spec.inlets[*].name", "a,b"),
            (".spec.inlets[1].name", "b"),
            (".metadata.labels.app\\.kubernetes\\.io/name", "pond"),
            (".metadata.labels['app.kubernetes.io/name']", "pond"),
            (".status.conditions[?(@.type==\"Ready\")].status", "True"),
            (".status.conditions[?(@.type==\"Ready\")].reason", NONE),
            ("..tier", "gold"),
            (".spec.inlets[0]", "{\"name\":\"a\"}"),
        ] {
            let columns = custom_columns(&format!("TITLE:{path}")).unwrap();
            assert_eq!(columns[0].cell(&document), expected, "{path}");
        }
        let two = custom_columns("A:.a[?(@.x==\",\")],B:.b").unwrap();
        let titles: Vec<String> = two.iter().map(CustomColumn::title).collect();
        assert_eq!(titles, ["A", "B"]);
    }

    #[test]
    fn a_wrong_column_is_an_error() {
        for text in ["", "NAME", "NAME:.a[", "NAME:.a[?(]"] {
            assert!(custom_columns(text).is_err(), "{text}");
        }
    }
}
