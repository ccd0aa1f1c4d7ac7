//! Parses short schemas: `string | required=true default="x"`.
//!
//! Source: kro's documentation of its `SimpleSchema`.
//!
//! One file: the parser of one notation, and the schemas that it gives.

use serde_json::{Map, Value, json};

use super::SchemaProblem;
use crate::definitions::object::check_default;
use orkestra_language::diagnostics::{FieldPath, nearest};
use orkestra_object::value::Node;

/// The maximum nesting of types.
const MAX_DEPTH: usize = 16;
/// The maximum number of fields, because nested types multiply.
const MAX_FIELDS: usize = 5000;
/// A field with a complete schema has this single key.
const COMPLETE: &str = "openAPIV3Schema";
/// The types that need no declaration.
const TYPES: [&str; 6] = ["string", "integer", "number", "float", "boolean", "object"];
/// The settings behind `|`.
const SETTINGS: [&str; 15] = [
    "required",
    "default",
    "description",
    "enum",
    "minimum",
    "maximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "pattern",
    "format",
    "immutable",
    "validation",
];

/// Returns the schema of an object whose fields have these short schemas. `types` are the types declared next to it, and `at` the
/// path of the fields, for problems.
///
/// A field with a problem gets a schema that accepts any value.
pub fn object_schema(
    fields: &Value,
    types: &Value,
    at: &FieldPath,
    problems: &mut Vec<SchemaProblem>,
) -> Value {
    let mut reader = Reader {
        types,
        problems,
        room: MAX_FIELDS,
        around: Vec::new(),
    };
    reader.object(fields, at, MAX_DEPTH)
}

struct Reader<'a> {
    types: &'a Value,
    problems: &'a mut Vec<SchemaProblem>,
    /// The number of fields that may still be read.
    room: usize,
    /// The declared types around the current field.
    around: Vec<String>,
}

impl Reader<'_> {
    fn object(&mut self, fields: &Value, at: &FieldPath, depth: usize) -> Value {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for (key, field) in fields.as_object().into_iter().flatten() {
            let place = at.field(key);
            let Some(room) = self.room.checked_sub(1) else {
                self.problem(at, "the schema has too many fields");
                break;
            };
            self.room = room;
            let (schema, is_required) = match field {
                Value::String(text) => self.field(text, &place, depth),
                Value::Object(map) if map.len() == 1 && map.contains_key(COMPLETE) => {
                    (map[COMPLETE].clone(), false)
                }
                Value::Object(_) if depth > 0 => {
                    let mut below = self.object(field, &place, depth - 1);
                    if below["required"].is_null() {
                        below["default"] = json!({});
                    }
                    (below, false)
                }
                _ => {
                    let why = "expected a type such as `string`, or nested fields";
                    (self.open(&place, why), false)
                }
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
    fn field(&mut self, text: &str, at: &FieldPath, depth: usize) -> (Value, bool) {
        let (type_, settings) = text.split_once('|').unwrap_or((text, ""));
        let mut schema = self.type_(type_.trim(), at, depth);
        let mut is_required = false;
        let settings = match settings_of(settings) {
            Ok(settings) => settings,
            Err(rest) => {
                let why = format!("`{rest}` is not a setting: expected `name=value`");
                self.problem(at, why);
                return (schema, false);
            }
        };
        for (name, value) in settings {
            if !fits(name, schema["type"].as_str()) {
                let type_ = type_.trim();
                self.problem(at, format!("`{name}` does not apply to the type `{type_}`"));
                continue;
            }
            match name {
                "required" | "immutable" if value != "true" && value != "false" => {
                    self.problem(at, format!("`{name}` is `true` or `false`"));
                }
                "required" => is_required = value == "true",
                "immutable" if value == "true" => {
                    let rule = json!({ "rule": "self == oldSelf", "message": "the field cannot be changed" });
                    push(&mut schema, rule);
                }
                "immutable" => {}
                "validation" => push(&mut schema, json!({ "rule": value })),
                "default" => schema["default"] = typed(&schema, &value),
                "description" | "pattern" | "format" => schema[name] = json!(value),
                "enum" => {
                    let words = value.split(',').map(|word| typed(&schema, word.trim()));
                    schema["enum"] = words.collect();
                }
                "minimum" | "maximum" | "multipleOf" | "minLength" | "maxLength" | "minItems"
                | "maxItems" => match value.parse::<serde_json::Number>() {
                    Ok(number) => schema[name] = Value::Number(number),
                    Err(_) => self.problem(at, format!("`{name}` is a number, found `{value}`")),
                },
                other => {
                    let problem = SchemaProblem::new(at, format!("unknown setting `{other}`"));
                    let near = nearest(other, SETTINGS);
                    self.problems.push(SchemaProblem {
                        hint: Some(near.map_or_else(
                            || format!("expected one of {}", SETTINGS.join(", ")),
                            |near| format!("did you mean `{near}`?"),
                        )),
                        ..problem
                    });
                }
            }
        }
        self.check_default(&mut schema, at);
        (schema, is_required)
    }

    /// Removes a default that is not valid for its own field.
    fn check_default(&mut self, schema: &mut Value, at: &FieldPath) {
        let Some(default) = schema.get("default") else {
            return;
        };
        let found = check_default(&Node::from(&*schema), &Node::from(default), at);
        if let (true, Some(fields)) = (found.has_errors(), schema.as_object_mut()) {
            fields.remove("default");
        }
        for problem in found {
            self.problem(at, format!("the default is not valid: {}", problem.message));
        }
    }

    fn type_(&mut self, text: &str, at: &FieldPath, depth: usize) -> Value {
        let Some(depth) = depth.checked_sub(1) else {
            return self.open(at, "the types are nested too deep");
        };
        if let Some(items) = text.strip_prefix("[]") {
            return json!({ "type": "array", "items": self.type_(items.trim(), at, depth) });
        }
        if let Some(values) = text.strip_prefix("map[string]") {
            let values = self.type_(values.trim(), at, depth);
            return json!({ "type": "object", "additionalProperties": values });
        }
        match text {
            "string" | "integer" | "boolean" => json!({ "type": text }),
            "float" | "number" => json!({ "type": "number" }),
            "object" => json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            named => match self.types.get(named).cloned() {
                Some(_) if self.around.iter().any(|around| around == named) => {
                    self.open(at, &format!("the type `{named}` contains itself"))
                }
                Some(fields) => self.named(named, &fields, at, depth),
                None => {
                    let mut known: Vec<&str> = TYPES.to_vec();
                    known.extend(
                        self.types
                            .as_object()
                            .into_iter()
                            .flatten()
                            .map(|(name, _)| &**name),
                    );
                    let usual = match named {
                        "int" | "int32" | "int64" => Some("integer"),
                        "bool" => Some("boolean"),
                        "str" | "text" => Some("string"),
                        "double" => Some("number"),
                        "map" => Some("map[string]string"),
                        "list" | "array" => Some("[]string"),
                        other => nearest(other, known),
                    };
                    let hint = usual.map(|near| format!("did you mean `{near}`?"));
                    let open = self.open(at, &format!("the type `{named}` is not declared"));
                    if let (Some(last), Some(hint)) = (self.problems.last_mut(), hint) {
                        last.hint = Some(hint);
                    }
                    open
                }
            },
        }
    }

    /// Returns the schema of a declared type: fields, a short schema, or a complete one.
    fn named(&mut self, name: &str, declared: &Value, at: &FieldPath, depth: usize) -> Value {
        self.around.push(name.to_owned());
        let schema = match declared {
            Value::String(text) => self.field(text, at, depth).0,
            Value::Object(map) if map.len() == 1 && map.contains_key(COMPLETE) => {
                map[COMPLETE].clone()
            }
            fields => self.object(fields, at, depth),
        };
        self.around.pop();
        schema
    }

    fn problem(&mut self, at: &FieldPath, message: impl Into<String>) {
        self.problems.push(SchemaProblem::new(at, message));
    }

    /// Returns a schema that accepts any value.
    fn open(&mut self, at: &FieldPath, why: &str) -> Value {
        self.problem(at, why);
        json!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}

fn push(schema: &mut Value, rule: Value) {
    if let Some(rules) = schema["x-kubernetes-validations"].as_array_mut() {
        rules.push(rule);
    } else {
        schema["x-kubernetes-validations"] = json!([rule]);
    }
}

/// True if a setting applies to a type.
fn fits(setting: &str, type_: Option<&str>) -> bool {
    let permitted: &[&str] = match setting {
        "minimum" | "maximum" | "multipleOf" => &["integer", "number"],
        "minLength" | "maxLength" | "pattern" => &["string"],
        "minItems" | "maxItems" => &["array"],
        _ => return true,
    };
    type_.is_none_or(|type_| permitted.contains(&type_))
}

/// Splits `a=b c="d e"` into pairs. In quotes, `\"` and `\\` are escaped.
///
/// # Errors
/// The rest that is not a pair.
fn settings_of(text: &str) -> Result<Vec<(&str, String)>, &str> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=').ok_or(rest)?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric());
        if name.is_empty() || !is_name {
            return Err(rest);
        }
        let (value, next) = value_of(after).ok_or(rest)?;
        found.push((name, value));
        rest = next.trim_start();
    }
    Ok(found)
}

/// Returns the value at the start of a text, and the text behind it.
fn value_of(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| *c == '"' || *c == '\'');
    let Some(quote) = quote else {
        let end = end_of_bare(text);
        return Some((text[..end].to_owned(), &text[end..]));
    };
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                let (_, escaped) = chars.next()?;
                if !['\\', quote].contains(&escaped) {
                    value.push('\\');
                }
                value.push(escaped);
            }
            c if c == quote => return Some((value, &text[at + c.len_utf8()..])),
            c => value.push(c),
        }
    }
    None
}

/// Returns the end of a value without quotes: the next space outside of brackets.
fn end_of_bare(text: &str) -> usize {
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '[' | '{' if !is_quoted => depth += 1,
            ']' | '}' if !is_quoted => depth = depth.saturating_sub(1),
            c if c.is_whitespace() && depth == 0 && !is_quoted => return at,
            _ => {}
        }
    }
    text.len()
}

/// Converts a value to the type of its schema.
fn typed(schema: &Value, text: &str) -> Value {
    match schema["type"].as_str() {
        Some("string") => json!(text.trim_matches('"')),
        _ => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fields: &Value, types: &Value) -> (Value, Vec<String>) {
        let mut problems = Vec::new();
        let made = object_schema(
            fields,
            types,
            &FieldPath::root().field("spec"),
            &mut problems,
        );
        let texts = problems.iter().map(|one| {
            let hint = one.hint.as_deref().unwrap_or_default();
            format!("{}: {} {hint}", one.path, one.message)
        });
        (made, texts.collect())
    }

    #[test]
    fn types_and_settings_become_schemas() {
        let fields = json!({
            "name": "string | required=true description=\"a name, with = in it\"",
            "replicas": "integer | default=3 minimum=1",
            "ratio": "float|default=0.5",
            "mode": "string | enum=\"a,b\" default=\"a\"",
            "hosts": "[]string | minItems=1 default=[\"a b\"]",
            "labels": "map[string]string",
            "deep": "map[string][]integer",
            "ingress": { "enabled": "boolean | default=false" },
            "owner": "Person",
            "port": { "openAPIV3Schema": { "x-kubernetes-int-or-string": true } },
            "id": "string | immutable=true validation=\"self.startsWith('x')\"",
            "when": "string | format=date-time",
            "zip": "string | pattern=\"^\\\\d{5}$\"",
        });
        let types = json!({ "Person": { "mail": "string | required=true" } });
        let (made, problems) = read(&fields, &types);
        assert_eq!(problems, Vec::<String>::new());
        let properties = &made["properties"];
        assert_eq!(made["required"], json!(["name"]));
        assert_eq!(properties["name"]["description"], "a name, with = in it");
        for (name, expected) in [
            (
                "replicas",
                json!({ "type": "integer", "default": 3, "minimum": 1 }),
            ),
            ("ratio", json!({ "type": "number", "default": 0.5 })),
            (
                "mode",
                json!({ "type": "string", "default": "a", "enum": ["a", "b"] }),
            ),
            (
                "hosts",
                json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "default": ["a b"] }),
            ),
            (
                "labels",
                json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            ),
            ("port", json!({ "x-kubernetes-int-or-string": true })),
            ("when", json!({ "type": "string", "format": "date-time" })),
            ("zip", json!({ "type": "string", "pattern": "^\\d{5}$" })),
        ] {
            assert_eq!(properties[name], expected, "{name}");
        }
        assert_eq!(
            properties["deep"]["additionalProperties"]["items"]["type"],
            "integer"
        );
        assert_eq!(properties["ingress"]["default"], json!({}));
        assert_eq!(properties["owner"]["required"], json!(["mail"]));
        assert_eq!(
            properties["id"]["x-kubernetes-validations"][1]["rule"],
            "self.startsWith('x')"
        );
    }

    #[test]
    fn mistakes_are_reported_with_the_field_and_the_fix() {
        for (field, expected) in [
            (
                json!("int"),
                "the type `int` is not declared did you mean `integer`?",
            ),
            (json!("Persn"), "did you mean `Person`?"),
            (json!("Loop"), "the type `Loop` contains itself"),
            (
                json!("string | minimum=3"),
                "`minimum` does not apply to the type `string`",
            ),
            (
                json!("integer | minimun=3"),
                "unknown setting `minimun` did you mean `minimum`?",
            ),
            (
                json!("integer | default=x"),
                "the default is not valid: expected an integer",
            ),
            (
                json!("integer | minimum=1 default=0"),
                "the default is not valid: expected at least 1",
            ),
            (json!("string | required"), "`required` is not a setting"),
            (
                json!("string | required=yes"),
                "`required` is `true` or `false`",
            ),
            (json!("string | pattern=\"open"), "is not a setting"),
            (json!(3), "expected a type"),
        ] {
            let types = json!({ "Person": { "mail": "string" }, "Loop": { "next": "Loop" } });
            let (_, problems) = read(&json!({ "a": field }), &types);
            assert_eq!(problems.len(), 1, "{field}: {problems:?}");
            assert!(problems[0].starts_with("spec.a"), "{problems:?}");
            assert!(problems[0].contains(expected), "{field}: {problems:?}");
        }
    }
}
