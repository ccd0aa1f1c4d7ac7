//! Sets the defaults of a definition's schema, like the API server.

use super::CrdVersion;
use orkestra_object::value::{Map, Node};

impl CrdVersion {
    /// Sets every default of the schema that `object` lacks. A null that the schema does not allow counts as lacking.
    ///
    /// Source: Kubernetes, "Defaulting" and "Defaulting and Nullable" of custom resource definitions.
    pub fn set_defaults(&self, object: &mut Node) {
        set_defaults(&self.schema, object);
    }
}

/// Recursion depth is that of `object`, or of a default in the schema: both are bounded.
pub(crate) fn set_defaults(schema: &Node, value: &mut Node) {
    match value {
        Node::Map(map) => {
            let properties = schema.get("properties").and_then(Node::as_map);
            for (name, property) in properties.into_iter().flat_map(Map::iter) {
                let nullable = property.get("nullable").and_then(Node::as_bool) == Some(true);
                let lacks = match map.get(name) {
                    None => true,
                    Some(Node::Null) => !nullable,
                    Some(_) => false,
                };
                match property.get("default") {
                    Some(default) if lacks => {
                        map.insert(name.clone(), default.clone());
                    }
                    _ => {}
                }
                if let Some(below) = map.get_mut(name) {
                    set_defaults(property, below);
                }
            }
            let Some(rest) = schema.get("additionalProperties") else {
                return;
            };
            let keys: Vec<_> = map.keys().cloned().collect();
            for key in keys {
                let declared = properties.is_some_and(|all| all.get(&key).is_some());
                if let Some(below) = map.get_mut(&key).filter(|_| !declared) {
                    set_defaults(rest, below);
                }
            }
        }
        Node::List(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items.iter_mut() {
                    set_defaults(schema, item);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_lacking_is_set_as_deep_as_the_object_goes() {
        let size = json!({ "type": "object", "properties": { "depth": { "default": 3 }, "unit": { "default": "m" } } });
        let version = CrdVersion {
            scale: None,
            name: "v1".into(),
            served: true,
            storage: true,
            status: true,
            schema: Arc::new(Node::from(
                &json!({ "properties": { "spec": { "properties": {
                    "fish": { "default": "carp" },
                    "shade": { "default": "light", "nullable": true },
                    "size": size,
                    "whole": { "default": {}, "properties": { "deep": { "default": 1 } } },
                    "parts": { "items": size },
                    "named": { "additionalProperties": size },
                }}}}),
            )),
        };
        let mut object = Node::from(&json!({ "spec": {
            "fish": null, "shade": null, "size": { "depth": 1 }, "parts": [{}, 7], "named": { "a": {} },
        }}));
        version.set_defaults(&mut object);
        assert_eq!(
            object.to_json(),
            json!({ "spec": {
                "fish": "carp", "shade": null, "size": { "depth": 1, "unit": "m" },
                "whole": { "deep": 1 },
                "parts": [{ "depth": 3, "unit": "m" }, 7],
                "named": { "a": { "depth": 3, "unit": "m" } },
            }})
        );
        let mut other = Node::from("text");
        version.set_defaults(&mut other);
        assert_eq!(other, Node::from("text"));
    }
}
