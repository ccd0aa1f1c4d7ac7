//! A resolved composition as YAML: a Katalog for each source, with the overrides in it.
//!
//! Several documents, not one: notes and profiles belong to the Katalog that declares them.

use std::fmt::Write as _;

use super::artifact::{SourceRecord, Verified};
use super::resolved::ResolvedComposition;
use orkestra_language::api::Scope;
use orkestra_language::diagnostics::FieldPath;
use orkestra_language::tree::{Origin, Tree, TreeKey, TreeValue};

impl ResolvedComposition {
    /// Returns the merged Katalogs as a YAML stream, one document for each source. `origins` adds to each value the file and line
    /// that it comes from, as a comment.
    pub fn to_yaml(&self, origins: bool) -> String {
        let mut text = String::new();
        for scope in self.document.spec.scopes.0.iter() {
            text.push_str("---\n");
            let record = scope.entries.first().and_then(|name| self.source_of(name));
            text.push_str(&header(scope, record));
            let mut tree = scope.origin.merged();
            self.put_shared(&mut tree);
            let printer = Printer {
                origin: origins.then_some(&*scope.origin),
            };
            printer.block(&tree, 0, &FieldPath::root(), &mut text);
        }
        text
    }

    /// Adds the fields that the composition declares for all its operators.
    fn put_shared(&self, tree: &mut Tree) {
        let shared = self.head.get("spec").and_then(Tree::as_map);
        let Some(spec) = tree.get_mut("spec") else {
            return;
        };
        for (key, value) in shared.unwrap_or_default() {
            // Author and version are those of the source.
            if !["crds", "info"].contains(&key.name.as_str()) {
                spec.take(&[&key.name]);
                if let Some(fields) = spec.as_map_mut() {
                    fields.push((TreeKey::new(&key.name), value.clone()));
                }
            }
        }
    }
}

fn header(scope: &Scope, record: Option<&SourceRecord>) -> String {
    let mut text = format!("# {}\n", one_line(&scope.origin.file));
    if let Some(record) = record {
        let revision = match record.revision.as_str() {
            "" => String::new(),
            revision => format!(", revision {}", one_line(revision)),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {}{revision}", record.digest);
        if let Verified::By(who) = &record.verified {
            let _ = writeln!(text, "# signed by {}", one_line(who));
        }
    }
    text
}

struct Printer<'o> {
    /// The document, if origins are printed.
    origin: Option<&'o Origin>,
}

impl Printer<'_> {
    /// Writes the entries of a map or the items of a list, each on lines of its own.
    fn block(&self, tree: &Tree, indent: usize, path: &FieldPath, text: &mut String) {
        let margin = " ".repeat(indent);
        match &tree.value {
            TreeValue::Map(entries) => {
                for (key, value) in entries {
                    let _ = write!(text, "{margin}{}:", scalar(&key.name));
                    self.value(value, indent + 2, &path.field(&key.name), text);
                }
            }
            TreeValue::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    let path = path.index(index);
                    match &item.value {
                        TreeValue::Map(entries) if !entries.is_empty() => {
                            let mut inner = String::new();
                            self.block(item, indent + 2, &path, &mut inner);
                            let _ = write!(text, "{margin}- {}", &inner[indent + 2..]);
                        }
                        _ => {
                            let _ = write!(text, "{margin}-");
                            self.value(item, indent + 2, &path, text);
                        }
                    }
                }
            }
            _ => self.value(tree, indent, path, text),
        }
    }

    /// Writes a value behind its key or dash.
    fn value(&self, tree: &Tree, indent: usize, path: &FieldPath, text: &mut String) {
        let written = match &tree.value {
            TreeValue::Map(entries) if entries.is_empty() => "{}".to_owned(),
            TreeValue::List(items) if items.is_empty() => "[]".to_owned(),
            TreeValue::Map(_) | TreeValue::List(_) => {
                text.push('\n');
                return self.block(tree, indent, path, text);
            }
            TreeValue::Str(content) => scalar(content),
            _ => tree.to_json().to_string(),
        };
        let _ = writeln!(text, " {written}{}", self.comment(path));
    }

    fn comment(&self, path: &FieldPath) -> String {
        let Some(origin) = self.origin else {
            return String::new();
        };
        let (file, tree) = origin.owner(path);
        match tree.locate(path) {
            Some(span) => format!("  # {}:{}", one_line(file), span.line),
            None => format!("  # {}", one_line(file)),
        }
    }
}

/// Returns a text as a YAML scalar: plain where every reader takes it for this text, else in quotes.
fn scalar(text: &str) -> String {
    let is_edge = |c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '_' | '.');
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '.' | '-' | ' ');
    let word = text.to_ascii_lowercase();
    let is_typed = matches!(
        &*word,
        "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | ".inf" | ".nan"
    );
    let is_plain = text.starts_with(is_edge)
        && text.chars().all(is_inner)
        && !text.ends_with(' ')
        && !is_typed
        // `.5` is a number, and `...` ends a document.
        && !text.starts_with('.');
    if is_plain || (text.starts_with("./") && text.chars().all(is_inner) && !text.ends_with(' ')) {
        text.to_owned()
    } else {
        serde_json::Value::from(text).to_string()
    }
}

/// Returns a name on one line, for a comment.
fn one_line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn any_value_is_read_again_as_it_was() {
        let value = json!({
            "texts": ["a", "yes", "0644", "1e3", "", " x", "x ", "a: b", "# c", "- d", "é\n\t\"'", "./a b", ".5", "...", "{{ .x }}", "~", "2026-01-01"],
            "y": null, "on": [true, 1, -2.5, 18_446_744_073_709_551_615_u64],
            "empty": [{}, [], [[]], [{ "a": [] }]],
            "deep": [[[1, 2], [3]], { "a": { "b": [{ "c": 1, "d": [2] }] } }],
            "a.b/c: d": "x",
        });
        let mut text = String::new();
        let printer = Printer { origin: None };
        printer.block(&Tree::from_json(&value), 0, &FieldPath::root(), &mut text);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(read, value, "{text}");
    }
}
