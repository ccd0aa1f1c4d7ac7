//! Writes objects as YAML in the customary order of keys.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;

use super::Error;

/// Keys that come first, in this order; the others follow by name.
const FIRST: [&str; 21] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "crdFile",
    "apiTypes",
    "operatorBox",
    "group",
    "version",
    "scope",
    "names",
    "type",
    "description",
    "image",
    "replicas",
    "port",
    "required",
    "spec",
];
/// Keys that come last.
const LAST: [&str; 2] = ["patch", "status"];

/// Writes a document.
pub(crate) fn write(value: &Value) -> Result<String, Error> {
    serde_saphyr::to_string(&Ordered(value)).map_err(|why| Error::Write(why.to_string()))
}

/// Writes a comment on one line, whatever the text contains.
pub(crate) fn comment(text: &str) -> String {
    let line = text.chars().map(|c| if is_break(c) { ' ' } else { c });
    format!("# {}\n", line.collect::<String>().trim_end())
}

fn is_break(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

struct Ordered<'a>(&'a Value);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                let mut entries: Vec<_> = map.iter().collect();
                entries.sort_by_key(|(key, _)| rank(key));
                let mut out = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    out.serialize_entry(key, &Ordered(value))?;
                }
                out.end()
            }
            Value::Array(items) => {
                let mut out = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    out.serialize_element(&Ordered(item))?;
                }
                out.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// Ranks a key. The sort is stable, so keys of the same rank keep the order of the map.
fn rank(key: &str) -> usize {
    let place = |list: &[&str]| list.iter().position(|one| *one == key);
    match (place(&FIRST), place(&LAST)) {
        (Some(at), _) => at,
        (_, Some(at)) => FIRST.len() + 1 + at,
        _ => FIRST.len(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_people_look_for_comes_first() {
        let written = write(
            &json!({ "spec": { "b": 1, "patch": {}, "a": "yes", "name": "x" }, "kind": "K", "apiVersion": "v1" }),
        );
        assert_eq!(
            written.unwrap(),
            "apiVersion: v1\nkind: K\nspec:\n  name: x\n  a: \"yes\"\n  b: 1\n  patch: {}\n"
        );
    }

    #[test]
    fn a_comment_is_one_line() {
        assert_eq!(comment("a\nb: c\r\u{2028}"), "# a b: c\n");
    }
}
