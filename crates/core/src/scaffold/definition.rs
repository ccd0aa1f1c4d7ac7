//! Generates the CRD of a draft: a spec with defaults, and a status.

use serde_json::{Map, Value, json};

use super::CustomKind;

/// The version of a generated kind.
pub(super) const VERSION: &str = "v1alpha1";

/// Returns the CRD of a namespaced kind with that schema for its spec, and additional status fields.
pub(super) fn definition(kind: &CustomKind, spec: &Value, status: &Map<String, Value>) -> Value {
    let CustomKind {
        group,
        version,
        kind,
        plural,
        singular,
    } = kind;
    let mut fields = status.clone();
    fields.insert(
        "observedGeneration".to_owned(),
        json!({ "type": "integer", "format": "int64" }),
    );
    fields.insert("conditions".to_owned(), conditions());
    let mut root = json!({
        "type": "object",
        "properties": {
            "spec": spec,
            "status": {
                "type": "object",
                "default": { "observedGeneration": -1 },
                "properties": fields,
            },
        },
    });
    if needs_spec(spec) {
        root["required"] = json!(["spec"]);
    } else if spec["default"].is_null() {
        // Applies the defaults of its fields to a custom resource without a spec.
        root["properties"]["spec"]["default"] = json!({});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular },
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": root },
            }],
        },
    })
}

fn needs_spec(spec: &Value) -> bool {
    let required = spec["required"].as_array();
    required.is_some_and(|required| !required.is_empty())
}

fn columns() -> Value {
    let of_ready = |field| format!(".status.conditions[?(@.type==\"Ready\")].{field}");
    json!([
        { "name": "Ready", "type": "string", "jsonPath": of_ready("status") },
        { "name": "Reason", "type": "string", "jsonPath": of_ready("reason") },
        { "name": "Message", "type": "string", "priority": 1, "jsonPath": of_ready("message") },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
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
