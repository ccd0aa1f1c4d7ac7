//! Parses the schemas of kro's definitions: `string | required=true default="x"`.

use serde_json::{Map, Value, json};

use super::is_plain;

/// The maximum nesting of types.
const MAX_DEPTH: usize = 16;
/// The maximum number of fields, because nested types multiply.
const MAX_FIELDS: usize = 5000;

/// Returns the schema of an object whose fields have these short schemas. `types` are the types declared next to it.
/// Problems are added to `left`.
pub(super) fn schema(fields: &Value, types: &Value, left: &mut Vec<String>) -> Value {
    let mut reader = Reader {
        types,
        left,
        room: MAX_FIELDS,
    };
    reader.object(fields, "spec", MAX_DEPTH)
}

struct Reader<'a> {
    types: &'a Value,
    left: &'a mut Vec<String>,
    /// The number of fields that may still be read.
    room: usize,
}

impl Reader<'_> {
    fn object(&mut self, fields: &Value, path: &str, depth: usize) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (key, field) in fields.as_object().into_iter().flatten() {
            let Some(room) = self.room.checked_sub(1) else {
                break;
            };
            self.room = room;
            let place = format!("{path}.{key}");
            let (schema, is_required) = match field {
                Value::String(text) => self.field(text, &place, depth),
                Value::Object(_) if depth > 0 => {
                    let mut below = self.object(field, &place, depth - 1);
                    if below["required"].is_null() {
                        below["default"] = json!({});
                    }
                    (below, false)
                }
                _ => (self.open(&place, "is no type"), false),
            };
            if is_required {
                required.push(json!(key));
            }
            properties.insert(key.clone(), schema);
        }
        let mut schema = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Returns the schema of a field, and whether it is required.
    fn field(&mut self, text: &str, path: &str, depth: usize) -> (Value, bool) {
        let (type_, markers) = text.split_once('|').unwrap_or((text, ""));
        let mut schema = self.type_(type_.trim(), path, depth);
        let mut is_required = false;
        for (marker, value) in markers_of(markers) {
            let parsed = || serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            let text = value.trim_matches('"');
            match marker {
                "required" => is_required = text == "true",
                "default" => schema["default"] = typed(&schema, value),
                "description" => schema["description"] = json!(text),
                "enum" => {
                    let words = text.split(',').map(|word| typed(&schema, word.trim()));
                    schema["enum"] = words.collect();
                }
                "minimum" | "maximum" | "minLength" | "maxLength" | "minItems" | "maxItems" => {
                    schema[marker] = parsed();
                }
                "pattern" => schema["pattern"] = json!(text),
                other => {
                    let note = format!("{path}: the marker `{other}` of its type");
                    self.left.push(note);
                }
            }
        }
        (schema, is_required)
    }

    fn type_(&mut self, text: &str, path: &str, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else {
            return self.open(path, "has types that are nested too deep");
        };
        if let Some(items) = text.strip_prefix("[]") {
            return json!({ "type": "array", "items": self.type_(items, path, depth) });
        }
        if let Some(values) = text.strip_prefix("map[string]") {
            return json!({ "type": "object", "additionalProperties": self.type_(values, path, depth) });
        }
        match text {
            "string" | "integer" | "boolean" => json!({ "type": text }),
            "float" | "number" => json!({ "type": "number" }),
            "object" => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            named => match self.types.get(named).cloned() {
                Some(fields) => self.object(&fields, path, depth),
                None => self.open(
                    path,
                    &format!("has the type `{named}`, which is not declared"),
                ),
            },
        }
    }

    /// Returns a schema that accepts any value.
    fn open(&mut self, path: &str, why: &str) -> Value {
        self.left
            .push(format!("{path} {why}: its schema accepts any value"));
        json!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}

/// Splits `a=b c="d e"` into pairs; values keep their quotes.
fn markers_of(text: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        let end = match after.strip_prefix('"') {
            Some(quoted) => quoted.find('"').map_or(after.len(), |at| at + 2),
            None => after.find(char::is_whitespace).unwrap_or(after.len()),
        };
        let (value, next) = after.split_at(end);
        found.push((name.trim(), value));
        rest = next.trim_start();
    }
    found.retain(|(name, _)| is_plain(name));
    found
}

/// Converts a value to the type of its schema.
fn typed(schema: &Value, text: &str) -> Value {
    let bare = text.trim_matches('"');
    match schema["type"].as_str() {
        Some("string") => json!(bare),
        _ => serde_json::from_str(bare).unwrap_or_else(|_| json!(bare)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_markers_become_schemas() {
        let fields = json!({
            "name": "string | required=true description=\"a name, with = in it\"",
            "replicas": "integer | default=3 minimum=1",
            "mode": "string | enum=\"a,b\" default=\"a\"",
            "hosts": "[]string",
            "labels": "map[string]string",
            "ingress": { "enabled": "boolean | default=false" },
            "owner": "Person",
            "odd": 3,
            "lost": "Nobody",
        });
        let types = json!({ "Person": { "mail": "string", "boss": "Person" } });
        let mut left = Vec::new();
        let made = schema(&fields, &types, &mut left);
        let properties = &made["properties"];
        assert_eq!(made["required"], json!(["name"]));
        assert_eq!(properties["name"]["description"], "a name, with = in it");
        assert_eq!(
            properties["replicas"],
            json!({ "type": "integer", "default": 3, "minimum": 1 })
        );
        assert_eq!(
            properties["mode"],
            json!({ "type": "string", "default": "a", "enum": ["a", "b"] })
        );
        assert_eq!(
            properties["hosts"],
            json!({ "type": "array", "items": { "type": "string" } })
        );
        assert_eq!(properties["ingress"]["default"], json!({}));
        assert_eq!(properties["owner"]["properties"]["mail"]["type"], "string");
        assert!(
            left.iter().any(|one| one.contains("nested too deep")),
            "{left:?}"
        );
        assert!(left.iter().any(|one| one.contains("spec.odd")), "{left:?}");
        assert!(left.iter().any(|one| one.contains("`Nobody`")), "{left:?}");
    }
}
