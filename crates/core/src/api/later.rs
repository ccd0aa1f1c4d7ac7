//! Marks in the schemas of the API types that go beyond JSON Schema.
//!
//! A field that the language documents and that is not built yet is known to the schema, so that a
//! document that declares it is told so; the Rust types don't carry it.

use schemars::Schema;
use schemars::transform::Transform;
use serde_json::{Map, Value, json};

/// Extension: how far the field is supported; `later` or `ignored`, absent means it works.
pub const SUPPORT: &str = "x-orkestra-support";
/// Extension of an enum: values of the language that are not built yet.
pub const LATER_VALUES: &str = "x-orkestra-later-values";
/// Extension: the format of a text, `duration` is the only one.
pub const FORMAT: &str = "x-orkestra-format";

/// Adds fields of the language that are not built yet to an object's schema.
pub(crate) struct Later(pub(crate) &'static [&'static str]);

impl Transform for Later {
    fn transform(&mut self, schema: &mut Schema) {
        mark(schema, self.0, "later");
    }
}

/// Adds fields that are accepted and have no effect here to an object's schema.
pub(crate) struct Ignored(pub(crate) &'static [&'static str]);

impl Transform for Ignored {
    fn transform(&mut self, schema: &mut Schema) {
        mark(schema, self.0, "ignored");
    }
}

/// Adds fields that may hold anything to an object's schema.
pub(crate) struct Accepted(pub(crate) &'static [&'static str]);

impl Transform for Accepted {
    fn transform(&mut self, schema: &mut Schema) {
        insert(schema, self.0, &json!({}));
    }
}

/// Takes fields out of an object's schema.
pub(crate) struct Without(pub(crate) &'static [&'static str]);

impl Transform for Without {
    fn transform(&mut self, schema: &mut Schema) {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        if let Some(properties) = properties {
            properties.retain(|name, _| !self.0.contains(&name.as_str()));
        }
    }
}

/// Adds values of the language that are not built yet to an enum's schema.
pub(crate) struct LaterValues(pub(crate) &'static [&'static str]);

impl Transform for LaterValues {
    fn transform(&mut self, schema: &mut Schema) {
        schema.insert(LATER_VALUES.to_owned(), json!(self.0));
    }
}

fn mark(schema: &mut Schema, names: &[&str], support: &str) {
    insert(schema, names, &json!({ SUPPORT: support }));
}

fn insert(schema: &mut Schema, names: &[&str], field: &Value) {
    let object = schema.ensure_object();
    let properties = object
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        for name in names {
            properties.insert((*name).to_owned(), field.clone());
        }
    }
}
