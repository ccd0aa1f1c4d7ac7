//! The types of the status fields that an entry writes.

use serde_json::{Map, Value, json};

use orkestra_language::api::{CrdEntry, StatusField, StatusType};
use orkestra_object::value::Node;

/// Fields that every operator writes.
const AUTOMATIC: [&str; 2] = ["conditions", "observedGeneration"];

/// Returns the schemas of the status fields that an entry writes: with the type that it declares, that of the field of the spec
/// that it copies, or text; of other expressions any value.
pub(crate) fn written(entry: &CrdEntry, spec: &Value) -> Map<String, Value> {
    let mut fields = Map::new();
    let status = entry
        .operator_box
        .as_ref()
        .and_then(|declared| declared.status.as_ref());
    for field in status.into_iter().flat_map(|status| &status.fields) {
        let path: Vec<&str> = field.path.trim().split('.').collect();
        let is_plain = |key: &&str| {
            !key.is_empty()
                && key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
        };
        // A path that is a template, or has an index, is known only when it is rendered.
        if path.iter().all(is_plain) && !AUTOMATIC.contains(&path[0]) {
            insert(&mut fields, &path, schema_of(field, spec));
        }
    }
    fields
}

/// Sets the schema at a path, with objects around it. Of two different ones for one path, the value can be any.
fn insert(fields: &mut Map<String, Value>, path: &[&str], schema: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        let known = fields.entry(*first).or_insert_with(|| schema.clone());
        if *known != schema {
            *known = open();
        }
        return;
    }
    let around = fields
        .entry(*first)
        .or_insert_with(|| json!({ "type": "object", "properties": {} }));
    match around.get_mut("properties").and_then(Value::as_object_mut) {
        Some(below) => insert(below, rest, schema),
        None => *around = open(),
    }
}

fn open() -> Value {
    json!({ "x-kubernetes-preserve-unknown-fields": true })
}

fn schema_of(field: &StatusField, spec: &Value) -> Value {
    let of = |type_: &str| json!({ "type": type_ });
    match field.type_ {
        Some(StatusType::String) => return of("string"),
        Some(StatusType::Int) => return of("integer"),
        Some(StatusType::Float) => return of("number"),
        Some(StatusType::Bool) => return of("boolean"),
        Some(StatusType::Auto) => return open(),
        None => {}
    }
    match field.value.node() {
        Node::Bool(_) => of("boolean"),
        Node::Int(_) | Node::UInt(_) => of("integer"),
        Node::Float(_) => of("number"),
        Node::Str(text) => of_text(text, spec),
        _ => open(),
    }
}

fn of_text(text: &str, spec: &Value) -> Value {
    let text = text.trim();
    let single = text
        .strip_prefix("{{")
        .and_then(|rest| rest.strip_suffix("}}"));
    let Some(inner) = single.filter(|inner| !inner.contains("{{") && !inner.contains("}}")) else {
        // Text around expressions stays text.
        let is_flow = [
            "{{ if", "{{if", "{{- if", "{{ range", "{{range", "{{ with", "{{with", "{{ $", "{{$",
        ]
        .iter()
        .any(|start| text.contains(start));
        return if is_flow {
            open()
        } else {
            json!({ "type": "string" })
        };
    };
    let path = inner.trim().trim_matches('-').trim();
    if [".metadata.name", ".metadata.namespace"].contains(&path) {
        return json!({ "type": "string" });
    }
    let Some(path) = path.strip_prefix(".spec.") else {
        return open();
    };
    let field = path
        .split('.')
        .fold(spec, |schema, name| &schema["properties"][name]);
    match field["type"].as_str() {
        Some(type_ @ ("string" | "integer" | "number" | "boolean")) => json!({ "type": type_ }),
        _ => open(),
    }
}
