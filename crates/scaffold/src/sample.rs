//! Generates a minimal value that a structural schema accepts.

use regex::RegexBuilder;
use serde_json::{Map, Number, Value, json};

/// Candidates for a pattern or a length, the simplest first.
const TEXTS: [&str; 30] = [
    "example",
    "example-1",
    "Example",
    "EXAMPLE",
    "a",
    "A",
    "1",
    "0",
    "10",
    "1Gi",
    "100m",
    "50%",
    "5m",
    "1h0m0s",
    "v1",
    "v1.0.0",
    "1.0.0",
    "example.org",
    "www.example.org",
    "https://example.org",
    "http://example.org/path",
    "/example",
    "a/b",
    "example/example:1.0",
    "10.0.0.1",
    "10.0.0.0/8",
    "admin@example.org",
    "0 3 * * *",
    "2030-01-01T00:00:00Z",
    "00000000-0000-4000-8000-000000000000",
];
/// The maximum length of a text generated for `minLength`.
const MAX_TEXT: u64 = 1024;
/// The maximum number of items generated for `minItems`.
const MAX_ITEMS: u64 = 32;
/// The maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES: usize = 1 << 20;

/// Generates a value for the schema of the field at `path`. If no value is certain to be accepted, adds the path to `open`.
pub(crate) fn value(schema: &Value, path: &str, open: &mut Vec<String>) -> Value {
    if let Some(given) = ["default", "example"]
        .iter()
        .find_map(|key| schema.get(key))
        && !given.is_null()
    {
        return given.clone();
    }
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    if has_rules(schema) {
        open.push(format!("{path} has validation rules"));
    }
    if schema["x-kubernetes-int-or-string"] == true {
        return json!(1);
    }
    match schema["type"].as_str() {
        Some("string") => text(schema, path, open),
        Some("integer") => number(schema, true),
        Some("number") => number(schema, false),
        Some("boolean") => json!(false),
        Some("array") => list(schema, path, open),
        _ => object(schema, path, open),
    }
}

/// Adds the fields of the spec that templates read and `made` lacks, with values that their schemas accept: a name that is
/// composed of an empty field would not be valid. Fields with a default have a value in any case.
pub(crate) fn complete(made: &mut Value, spec: &Value, templates: &Value, open: &mut Vec<String>) {
    let mut paths = std::collections::BTreeSet::new();
    collect_paths(templates, &mut paths);
    for path in paths {
        add(made, spec, &path, ("spec", open));
    }
}

/// Collects the paths below `.spec` in templates.
fn collect_paths(templates: &Value, paths: &mut std::collections::BTreeSet<Vec<String>>) {
    match templates {
        Value::String(text) => {
            for after in text.split(".spec.").skip(1) {
                let end = after.find(|c: char| !(c.is_ascii_alphanumeric() || "_.".contains(c)));
                let path = after[..end.unwrap_or(after.len())].trim_end_matches('.');
                paths.insert(path.split('.').map(str::to_owned).collect());
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_paths(item, paths)),
        Value::Object(map) => map.values().for_each(|below| collect_paths(below, paths)),
        _ => {}
    }
}

fn add(made: &mut Value, schema: &Value, path: &[String], (place, open): (&str, &mut Vec<String>)) {
    let (Some((first, rest)), Some(fields)) = (path.split_first(), made.as_object_mut()) else {
        return;
    };
    let below = &schema["properties"][first];
    // Where the schema ends, the templates decide alone what a value is.
    if below.is_null() || (below.get("default").is_some() && rest.is_empty()) {
        return;
    }
    let place = format!("{place}.{first}");
    let field = fields
        .entry(first.clone())
        .or_insert_with(|| match below["type"].as_str() {
            None | Some("object") if rest.is_empty() && below["properties"].is_null() => json!({}),
            _ => value(below, &place, open),
        });
    add(field, below, rest, (&place, open));
}

/// True if the API server checks more than the types.
fn has_rules(schema: &Value) -> bool {
    let rules = schema["x-kubernetes-validations"].as_array();
    rules.is_some_and(|rules| !rules.is_empty())
}

fn object(schema: &Value, path: &str, open: &mut Vec<String>) -> Value {
    let mut required = words(&schema["required"]);
    for list in ["oneOf", "anyOf"] {
        let first = schema[list].as_array().and_then(|all| all.first());
        required.extend(first.map(|one| words(&one["required"])).unwrap_or_default());
    }
    for one in schema["allOf"].as_array().into_iter().flatten() {
        required.extend(words(&one["required"]));
    }
    let mut made = Map::new();
    for key in required {
        let below = &schema["properties"][&key];
        let place = format!("{path}.{key}");
        let below = if below.is_null() {
            &schema["additionalProperties"]
        } else {
            below
        };
        made.insert(key, value(below, &place, open));
    }
    let least = schema["minProperties"].as_u64().unwrap_or_default();
    let others = schema["properties"].as_object().into_iter().flatten();
    for (key, below) in others {
        if (made.len() as u64) < least && !made.contains_key(key) {
            made.insert(key.clone(), value(below, &format!("{path}.{key}"), open));
        }
    }
    let any = &schema["additionalProperties"];
    if (made.len() as u64) < least && any.is_object() {
        made.insert(
            "example".to_owned(),
            value(any, &format!("{path}.example"), open),
        );
    }
    if (made.len() as u64) < least {
        open.push(format!("{path} needs at least {least} fields"));
    }
    Value::Object(made)
}

fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().into_iter().flatten();
    words
        .filter_map(|word| word.as_str().map(str::to_owned))
        .collect()
}

fn list(schema: &Value, path: &str, open: &mut Vec<String>) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or_default();
    let is_set = matches!(
        schema["x-kubernetes-list-type"].as_str(),
        Some("set" | "map")
    );
    if least > MAX_ITEMS || (is_set && least > 1) {
        open.push(format!("{path} needs at least {least} items"));
    }
    let items = (0..least.min(MAX_ITEMS)).map(|_| value(&schema["items"], path, open));
    Value::Array(items.collect())
}

fn text(schema: &Value, path: &str, open: &mut Vec<String>) -> Value {
    let formatted = match schema["format"].as_str() {
        Some("date-time") => Some("2030-01-01T00:00:00Z"),
        Some("date") => Some("2030-01-01"),
        Some("duration") => Some("5m"),
        Some("uuid" | "uuid4") => Some("00000000-0000-4000-8000-000000000000"),
        Some("ipv4" | "ip") => Some("10.0.0.1"),
        Some("ipv6") => Some("::1"),
        Some("cidr") => Some("10.0.0.0/8"),
        Some("uri") => Some("https://example.org"),
        Some("hostname") => Some("example.org"),
        Some("email") => Some("admin@example.org"),
        Some("byte") => Some("ZXhhbXBsZQ=="),
        _ => None,
    };
    let pattern = schema["pattern"].as_str();
    let pattern = pattern.map(|one| RegexBuilder::new(one).size_limit(PATTERN_BYTES).build());
    let least = schema["minLength"].as_u64().unwrap_or_default();
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX);
    let fits = |text: &str| {
        let length = text.chars().count() as u64;
        let matches = match &pattern {
            Some(Ok(pattern)) => pattern.is_match(text),
            // A pattern that cannot be compiled here is not certain to match.
            Some(Err(_)) => false,
            None => true,
        };
        (least..=most).contains(&length) && matches
    };
    let long = usize::try_from(least.min(MAX_TEXT)).unwrap_or_default();
    let long = ["a", "0"].map(|letter| letter.repeat(long));
    let tried = formatted
        .into_iter()
        .chain(TEXTS)
        .chain(long.iter().map(String::as_str));
    if let Some(found) = tried.into_iter().find(|text| fits(text)) {
        return json!(found);
    }
    let why = schema["pattern"].as_str().map_or_else(
        || format!("{path} needs {least} to {most} characters"),
        |pattern| format!("{path} needs a text that matches `{pattern}`"),
    );
    open.push(why);
    json!(formatted.unwrap_or("example"))
}

/// Returns the smallest accepted number that is not negative, if there is one.
fn number(schema: &Value, is_integer: bool) -> Value {
    let bound = |name: &str| schema[name].as_f64();
    let least = bound("minimum").map(|least| {
        let beyond = schema["exclusiveMinimum"] == true;
        least + if beyond { 1.0 } else { 0.0 }
    });
    let most = bound("maximum").map(|most| {
        let beyond = schema["exclusiveMaximum"] == true;
        most - if beyond { 1.0 } else { 0.0 }
    });
    let mut found = least.unwrap_or(1.0).max(least.map_or(1.0, |least| least));
    if let Some(most) = most {
        found = found.min(most);
    }
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0) {
        found = (found / step).ceil() * step;
    }
    if is_integer {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "saturates, and a wrong sample is found by the API server"
        )]
        return json!(found as i64);
    }
    Number::from_f64(found).map_or(json!(1), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(schema: &Value) -> (Value, Vec<String>) {
        let mut open = Vec::new();
        let made = value(schema, "spec", &mut open);
        (made, open)
    }

    #[test]
    fn what_is_required_is_made_and_the_schema_accepts_it() {
        let cases = [
            json!({ "type": "object", "required": ["a", "b"], "properties": { "a": { "type": "string", "minLength": 40 }, "b": { "type": "array", "minItems": 2, "items": { "type": "integer", "minimum": 3 } } } }),
            json!({ "type": "object", "oneOf": [{ "required": ["x"] }, { "required": ["y"] }], "properties": { "x": { "type": "boolean" } } }),
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "type": "string" } }),
            json!({ "type": "string", "pattern": "^[0-9]+(m|h)$" }),
            json!({ "type": "string", "enum": ["north", "south"] }),
            json!({ "type": "string", "format": "date-time" }),
            json!({ "type": "string", "pattern": "^([0-9]{1,3}\\.){3}[0-9]{1,3}$" }),
            json!({ "type": "integer", "maximum": -4 }),
            json!({ "type": "integer", "minimum": 7, "multipleOf": 5 }),
            json!({ "type": "number", "minimum": 0.25 }),
            json!({ "x-kubernetes-int-or-string": true }),
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        ];
        for schema in cases {
            let (made, open) = sample(&schema);
            assert!(open.is_empty(), "{schema}: {open:?}");
            let validator = jsonschema::validator_for(&schema).unwrap();
            assert!(validator.is_valid(&made), "{schema}: {made}");
        }
    }

    #[test]
    fn what_templates_read_is_added_unless_it_has_a_default() {
        let spec = json!({ "type": "object", "properties": {
            "name": { "type": "string" }, "image": { "type": "string", "default": "nginx" }, "unread": { "type": "string" },
            "web": { "type": "object", "default": {}, "properties": { "host": { "type": "string" }, "port": { "type": "integer", "default": 80 } } },
        }});
        let templates = json!([{ "name": "{{ .spec.name }}-x", "data": { "a": "{{ .spec.image }} {{ .spec.web.host }}:{{ .spec.web.port }} {{ .spec.lost }}" } }]);
        let (mut made, mut open) = (json!({}), Vec::new());
        complete(&mut made, &spec, &templates, &mut open);
        assert_eq!(
            made,
            json!({ "name": "example", "web": { "host": "example" } })
        );
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn where_no_value_is_sure_the_field_is_named() {
        for (schema, part) in [
            (
                json!({ "type": "string", "pattern": "^zebra-[0-9]{9}$" }),
                "zebra",
            ),
            (json!({ "type": "string", "pattern": "(?=a)" }), "matches"),
            (
                json!({ "type": "string", "minLength": 9_999_999 }),
                "characters",
            ),
            (
                json!({ "type": "array", "minItems": 900_000_000, "items": { "type": "object" } }),
                "items",
            ),
            (
                json!({ "type": "object", "x-kubernetes-validations": [{ "rule": "false" }] }),
                "rules",
            ),
            (json!({ "type": "object", "minProperties": 3 }), "fields"),
        ] {
            let (_, open) = sample(&schema);
            assert!(
                open.len() == 1 && open[0].contains(part),
                "{schema}: {open:?}"
            );
        }
    }
}
