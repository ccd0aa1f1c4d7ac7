//! `ork schema`: a JSON Schema for editors.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::api::names;
use crate::api::shape::{Field, ObjectShape, Shape};
use crate::document::DocumentKind;
use crate::document::aliases::{ALIASES, WORD_ALIASES};

/// Returns the JSON Schema (draft 2020-12) of documents of a kind; `None` for kinds that are not checked.
///
/// It accepts everything that the check of documents accepts without a warning, including templates and quoted numbers: editors offer
/// the present spellings, and only fields and words that work.
pub fn json_schema(kind: DocumentKind) -> Option<Value> {
    let mut writer = Writer::default();
    let root = writer.shape(kind.shape()?);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.name(),
        "$defs": writer.definitions,
    });
    let root = root.pointer("/$ref").and_then(Value::as_str);
    let name = root
        .and_then(|target| target.rsplit('/').next())
        .unwrap_or_default();
    let own = schema["$defs"]
        .as_object_mut()
        .and_then(|all| all.remove(name));
    if let (Some(Value::Object(own)), Some(schema)) = (own, schema.as_object_mut()) {
        schema.extend(own);
        schema["type"] = json!("object");
        schema["properties"]["kind"] = json!({ "const": kind.name() });
        let versions = [names::API_VERSION, names::OLD_API_VERSION];
        schema["properties"]["apiVersion"] = json!({ "enum": versions });
        schema.insert("required".to_owned(), json!(["apiVersion", "kind"]));
    }
    if let Some(spec) = schema["$defs"].get_mut("KatalogSpec") {
        // This is a rule of the check, because the type has a default.
        spec["required"] = json!(["crds"]);
    }
    Some(schema)
}

#[derive(Default)]
struct Writer {
    definitions: BTreeMap<String, Value>,
}

impl Writer {
    /// Null is valid wherever a field is optional.
    fn shape(&mut self, shape: &Shape) -> Value {
        match shape {
            Shape::Free => json!({}),
            Shape::Scalar | Shape::Text => {
                json!({ "type": ["string", "number", "boolean", "null"] })
            }
            Shape::Bool => json!({ "enum": [true, false, "true", "false", null] }),
            Shape::Int { min, max } => {
                let mut number = json!({ "type": ["integer", "string", "null"], "pattern": "^\\s*-?[0-9]+\\s*$" });
                for (key, bound) in [("minimum", min), ("maximum", max)] {
                    if let Some(bound) = bound {
                        number[key] = json!(bound);
                    }
                }
                number
            }
            Shape::Duration => json!({ "type": ["string", "integer", "null"] }),
            Shape::Enum { values, .. } => {
                let words = values.iter().map(|word| json!(word));
                let words: Vec<Value> = words.chain([Value::Null]).collect();
                json!({ "enum": words })
            }
            Shape::List(item) => json!({ "type": ["array", "null"], "items": self.shape(item) }),
            Shape::Object(object) if object.name.is_empty() => self.object(object),
            Shape::Object(object) => {
                if !self.definitions.contains_key(&object.name) {
                    self.definitions.insert(object.name.clone(), Value::Null);
                    let definition = self.object(object);
                    self.definitions.insert(object.name.clone(), definition);
                }
                json!({ "$ref": format!("#/$defs/{}", object.name) })
            }
            Shape::OneOf(shapes) => {
                let branches: Vec<Value> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({ "anyOf": branches })
            }
            Shape::OrTemplate(written) => {
                let template = json!({ "type": "string", "pattern": "\\{\\{" });
                json!({ "anyOf": [self.shape(written), template] })
            }
        }
    }

    fn object(&mut self, object: &ObjectShape) -> Value {
        let mut properties = Map::new();
        for (name, field) in &object.fields {
            if !field.works() {
                continue;
            }
            let schema = self.field(field, object, name);
            let quiet = ALIASES
                .iter()
                .filter(|alias| !alias.warns && alias.to == [name.as_str()]);
            for alias in quiet.filter(|alias| alias.of.is_empty() || alias.of == object.name) {
                if !object.fields.contains_key(alias.from[0]) {
                    properties.insert(alias.from[0].to_owned(), schema.clone());
                }
            }
            properties.insert(name.clone(), schema);
        }
        let rest = match &object.rest {
            Some(rest) => self.shape(rest),
            None => Value::Bool(false),
        };
        let mut schema = json!({
            "type": ["object", "null"],
            "properties": properties,
            "additionalProperties": rest,
        });
        if !object.description.is_empty() {
            schema["description"] = json!(object.description);
        }
        let required = object.fields.iter().filter(|(_, field)| field.required);
        let required: Vec<&String> = required.map(|(name, _)| name).collect();
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    fn field(&mut self, field: &Field, object: &ObjectShape, name: &str) -> Value {
        let mut schema = self.shape(&field.shape);
        let of_words = ["/enum", "/items/enum", "/items/anyOf/0/enum"];
        let place = of_words
            .into_iter()
            .find(|place| schema.pointer(place).is_some());
        let words = place.and_then(|place| schema.pointer_mut(place)?.as_array_mut());
        if let Some(words) = words {
            let quiet = WORD_ALIASES
                .iter()
                .filter(|word| !word.warns && word.fields.contains(&name));
            for word in quiet.filter(|word| word.of.is_empty() || word.of == object.name) {
                words.push(json!(word.from));
            }
        }
        if !field.description.is_empty() {
            schema["description"] = json!(field.description);
        }
        schema
    }
}
