//! The position of a field in an object that has no lines: the keys from its root to the field, as a file has them.
//!
//! The API server sends objects as JSON, without the file that they came from. So that a person finds the place in the file,
//! the keys around it are shown in YAML, with the names of list items. Values are not shown: they may be secret.

use serde_json::Value;

use orkestra_language::diagnostics::{FieldPath, Segment};

/// The most bytes of a key or name.
const TEXT_BYTES: usize = 60;
/// Fields that identify an item of a list, in the order in which they are looked for.
const NAMES: [&str; 4] = ["name", "field", "from", "kind"];

/// Returns the lines of the keys to `path`, the last one marked, each after `| `. If the object does not have the whole path,
/// its longest existing part is shown; none if not even its first key exists.
pub(crate) fn outline(object: &Value, path: &FieldPath) -> Vec<String> {
    let (mut lines, mut at, mut indent) = (Vec::new(), object, 0);
    // The mark: its column and width.
    let mut mark = (0, 0);
    // The dash of a list item, which stands before its first key.
    let mut dash: Option<usize> = None;
    for segment in path.segments() {
        match segment {
            Segment::Field(name) => {
                let Some(inner) = at.get(&**name) else { break };
                let key = fitting(name);
                let column = if let Some(column) = dash.take() {
                    lines.push(format!("{:column$}- {key}:", ""));
                    column + 2
                } else {
                    lines.push(format!("{:indent$}{key}:", ""));
                    indent
                };
                mark = (column, key.chars().count());
                (at, indent) = (inner, column + 2);
            }
            Segment::Index(index) => {
                let Some(inner) = at.get(*index) else { break };
                // A list stands below its key without further indentation.
                let column = dash
                    .take()
                    .map_or(indent.saturating_sub(2), |outer| outer + 2);
                let name = NAMES.iter().find_map(|name| {
                    let text = inner.get(*name)?.as_str()?;
                    Some(format!("{name}: {}", fitting(text)))
                });
                if let Some(name) = name {
                    lines.push(format!("{:column$}- {name}", ""));
                    mark = (column + 2, name.chars().count());
                    indent = column + 2;
                } else {
                    mark = (column, 1);
                    dash = Some(column);
                }
                at = inner;
            }
        }
    }
    if let Some(column) = dash {
        lines.push(format!("{:column$}-", ""));
    }
    if lines.is_empty() {
        return lines;
    }
    let (column, width) = mark;
    lines.push(format!("{:column$}{}", "", "^".repeat(width)));
    lines.iter().map(|line| format!("| {line}")).collect()
}

/// Returns a key or name on one line, cut if it is long.
fn fitting(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut short = String::new();
    for c in text.chars() {
        if short.len() + c.len_utf8() > TEXT_BYTES {
            short.push('…');
            break;
        }
        short.push(clean(c));
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(object: &Value, path: &str) -> String {
        outline(object, &FieldPath::parse(path)).join("\n")
    }

    #[test]
    fn keys_and_names_of_items_lead_to_the_field() {
        let object = json!({ "spec": { "crds": { "site": {
            "apiTypez": {},
            "configMaps": [{ "name": "a" }, { "name": "web", "data": { "token": "s3cret" } }],
            "plain": [["x", { "deep": 1 }]],
        } } } });
        let cases = [
            (
                "spec.crds.site.apiTypez",
                "| spec:\n|   crds:\n|     site:\n|       apiTypez:\n|       ^^^^^^^^",
            ),
            (
                "spec.crds.site.configMaps[1].data.token",
                "| spec:\n|   crds:\n|     site:\n|       configMaps:\n|       - name: web\n|         data:\n|           token:\n|           ^^^^^",
            ),
            // The item itself is underlined; for a missing field, its parent is.
            (
                "spec.crds.site.configMaps[0]",
                "| spec:\n|   crds:\n|     site:\n|       configMaps:\n|       - name: a\n|         ^^^^^^^",
            ),
            (
                "spec.crds.site.missing.field",
                "| spec:\n|   crds:\n|     site:\n|     ^^^^",
            ),
            (
                "spec.crds.site.plain[0][1].deep",
                "| spec:\n|   crds:\n|     site:\n|       plain:\n|         - deep:\n|           ^^^^",
            ),
        ];
        for (path, expected) in cases {
            assert_eq!(shown(&object, path), expected, "{path}");
        }
        for none in ["", "status.phase"] {
            assert_eq!(shown(&object, none), "", "{none}");
        }
    }

    #[test]
    fn hostile_keys_stay_on_their_line() {
        let key = format!("a\nb{}", "ü".repeat(100));
        let object = json!({ key.clone(): 1 });
        let lines = outline(&object, &FieldPath::root().field(&key));
        assert_eq!(lines.len(), 2);
        assert!(
            lines
                .iter()
                .all(|line| line.len() < 80 && !line.contains('\n')),
            "{lines:?}"
        );
    }
}
