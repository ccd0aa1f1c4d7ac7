//! The spec of a draft: the values that differ between custom resources, each with a default.

use serde_json::{Map, Value, json};

use super::is_plain;

/// Fields of a spec with their values.
#[derive(Debug, Clone, Default)]
pub(crate) struct SpecFields(Map<String, Value>);

impl SpecFields {
    /// Adds a field and returns the template that reads it; `None` if the field has another value, or its path cannot be
    /// read with dots.
    pub(crate) fn add(&mut self, path: &[&str], value: &Value) -> Option<String> {
        if value.is_null() || !path.iter().all(|key| is_plain(key)) {
            return None;
        }
        let (last, parents) = path.split_last()?;
        let mut map = &mut self.0;
        for parent in parents {
            let below = map.entry(*parent).or_insert_with(|| json!({}));
            map = below.as_object_mut()?;
        }
        match map.get(*last) {
            Some(before) if before != value => return None,
            Some(_) => {}
            None => {
                map.insert((*last).to_owned(), value.clone());
            }
        }
        Some(format!("{{{{ .spec.{} }}}}", path.join(".")))
    }

    /// True if there are no fields.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the values, as the spec of a custom resource.
    pub(crate) fn values(&self) -> Value {
        Value::Object(self.0.clone())
    }

    /// Returns the schema, with each value as the default of its field.
    pub(crate) fn schema(&self) -> Value {
        let mut schema = map_schema(&self.0);
        schema["description"] = json!("The declared state.");
        schema
    }
}

fn map_schema(map: &Map<String, Value>) -> Value {
    let properties = map.iter();
    let properties = properties.map(|(key, value)| {
        let mut schema = match value {
            Value::Object(below) => {
                let mut schema = map_schema(below);
                schema["default"] = json!({});
                schema
            }
            Value::Bool(_) => json!({ "type": "boolean", "default": value }),
            Value::Number(number) if number.is_f64() => {
                json!({ "type": "number", "default": value })
            }
            Value::Number(_) => json!({ "type": "integer", "default": value }),
            Value::Array(_) => {
                json!({ "type": "array", "items": { "type": "string" }, "default": value })
            }
            _ => json!({ "type": "string", "default": value }),
        };
        if key == "replicas" {
            schema["minimum"] = json!(0);
        }
        (key.clone(), schema)
    });
    json!({ "type": "object", "properties": properties.collect::<Map<_, _>>() })
}
