//! Extensions of JSON Schema in the schemas of the API types.
//!
//! The schema contains fields that the language documents and that are not implemented yet. A document that declares one is
//! checked and refused; no document is read into such a field.
//!
//! These fields are in a type `…Later`, next to the type that documents are read into. When a field is implemented, it moves to
//! that type.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::transform::Transform;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Extension: how far the field is supported; `later`, `ignored` or `refused`, absent means it works.
pub const SUPPORT: &str = "x-orkestra-support";
/// Extension of a field that is refused or has no effect: why.
pub const REASON: &str = "x-orkestra-reason";
/// Extension of an enum: values of the language that are not built yet.
pub const LATER_VALUES: &str = "x-orkestra-later-values";
/// Extension: the format of a text, `duration` is the only one.
pub const FORMAT: &str = "x-orkestra-format";
/// Extension: instead of the value in the first branch of `anyOf`, one template that returns it.
pub const TEMPLATE: &str = "x-orkestra-template";

/// The fields of `T`, which the language has and which are not built yet. A type that has it as a flattened field has
/// them in its schema, and nothing of them when it is read.
pub struct Later<T>(PhantomData<fn() -> T>);

impl<T> Clone for Later<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T> Default for Later<T> {
    fn default() -> Self {
        Later(PhantomData)
    }
}

impl<T> PartialEq for Later<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Later<T> {}

impl<T> fmt::Debug for Later<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

impl<T: JsonSchema> JsonSchema for Later<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Later{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        schema.remove("description");
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for field in properties.into_iter().flat_map(Map::values_mut) {
            if !field.is_object() {
                *field = json!({});
            }
            if let Some(field) = field.as_object_mut() {
                field.entry(SUPPORT).or_insert_with(|| json!("later"));
            }
        }
        schema
    }
}

/// Adds fields that are accepted and have no effect here to an object's schema.
pub(crate) struct Ignored(pub(crate) &'static [&'static str]);

impl Transform for Ignored {
    fn transform(&mut self, schema: &mut Schema) {
        let description = "Only for operators in Go.";
        insert(
            schema,
            self.0,
            &json!({ SUPPORT: "ignored", "description": description }),
        );
    }
}

/// Adds fields that are accepted and have no effect here to an object's schema, with the reason.
pub(crate) struct Idle(pub(crate) &'static [&'static str], pub(crate) &'static str);

impl Transform for Idle {
    fn transform(&mut self, schema: &mut Schema) {
        insert(
            schema,
            self.0,
            &json!({ SUPPORT: "ignored", REASON: self.1, "description": "Accepted for compatibility." }),
        );
    }
}

/// Adds fields that are refused to an object's schema, with the reason.
pub(crate) struct Refused(pub(crate) &'static [&'static str], pub(crate) &'static str);

impl Transform for Refused {
    fn transform(&mut self, schema: &mut Schema) {
        insert(
            schema,
            self.0,
            &json!({ SUPPORT: "refused", REASON: self.1 }),
        );
    }
}

/// Adds fields that may hold anything to an object's schema.
pub(crate) struct Accepted(pub(crate) &'static [&'static str]);

impl Transform for Accepted {
    fn transform(&mut self, schema: &mut Schema) {
        insert(
            schema,
            self.0,
            &json!({ "description": "Managed by the cluster." }),
        );
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
