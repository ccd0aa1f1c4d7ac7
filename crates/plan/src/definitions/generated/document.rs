//! The document of a definition: a spec with defaults, a status with conditions, and columns.

use serde_json::{Map, Value, json};

/// The names of a kind.
#[derive(Debug, Clone, Default)]
pub struct CrdNames {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural.
    pub plural: String,
    /// Singular.
    pub singular: String,
    /// Short names.
    pub short_names: Vec<String>,
    /// Categories.
    pub categories: Vec<String>,
    /// True if the kind is namespaced.
    pub is_namespaced: bool,
}

/// Returns the `CustomResourceDefinition` with these versions.
pub fn crd_document(names: &CrdNames, versions: &[Value]) -> Value {
    let CrdNames {
        group,
        kind,
        plural,
        singular,
        short_names,
        categories,
        is_namespaced,
    } = names;
    let mut of_kind = json!({
        "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular,
    });
    if !short_names.is_empty() {
        of_kind["shortNames"] = json!(short_names);
    }
    if !categories.is_empty() {
        of_kind["categories"] = json!(categories);
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": if *is_namespaced { "Namespaced" } else { "Cluster" },
            "names": of_kind,
            "versions": versions,
        },
    })
}

/// Returns a version with the status subresource, and with columns before those of the condition `Ready`.
pub fn version_document(
    name: &str,
    is_stored: bool,
    root: &Value,
    mut columns: Vec<Value>,
) -> Value {
    let of_ready = |field| format!(".status.conditions[?(@.type==\"Ready\")].{field}");
    columns.extend([
        json!({ "name": "Ready", "type": "string", "jsonPath": of_ready("status") }),
        json!({ "name": "Reason", "type": "string", "jsonPath": of_ready("reason") }),
        json!({ "name": "Message", "type": "string", "priority": 1, "jsonPath": of_ready("message") }),
        json!({ "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" }),
    ]);
    json!({
        "name": name,
        "served": true,
        "storage": is_stored,
        "subresources": { "status": {} },
        "additionalPrinterColumns": columns,
        "schema": { "openAPIV3Schema": root },
    })
}

/// Returns the schema of complete objects with that schema of the spec.
pub fn root_of(spec: &Value) -> Value {
    let mut root = json!({ "type": "object", "properties": { "spec": spec } });
    let required = spec["required"].as_array();
    if required.is_some_and(|required| !required.is_empty()) {
        root["required"] = json!(["spec"]);
    } else if spec["default"].is_null() {
        // Applies the defaults of its fields to a custom resource without a spec.
        root["properties"]["spec"]["default"] = json!({});
    }
    root
}

/// Adds the status: these fields, as far as the schema does not declare them, the conditions and the observed generation.
pub fn add_status(root: &mut Value, mut fields: Map<String, Value>) {
    fields.insert(
        "observedGeneration".to_owned(),
        json!({ "type": "integer", "format": "int64" }),
    );
    fields.insert("conditions".to_owned(), conditions());
    let status = &mut root["properties"]["status"];
    if status.is_null() {
        *status = json!({
            "type": "object",
            "default": { "observedGeneration": -1 },
            "properties": fields,
        });
        return;
    }
    if let Some(declared) = status["properties"].as_object_mut() {
        for (name, field) in fields {
            declared.entry(name).or_insert(field);
        }
    }
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status"],
            "properties": {
                "type": { "type": "string" },
                "status": { "type": "string" },
                "reason": { "type": "string" },
                "message": { "type": "string" },
                "lastTransitionTime": { "type": "string", "format": "date-time" },
                "observedGeneration": { "type": "integer", "format": "int64" },
            },
        },
    })
}
