//! The parts of a document that affect what runs.

use serde_json::{Value, json};

/// The fields of `spec` that say how a revision is run, and not what runs.
const UNSTORED: [&str; 4] = ["approve", "interval", "revisionHistoryLimit", "suspend"];

/// Returns the parts of a Katalog or a Motif that affect what runs: everything but status and the fields that say how it is
/// run, and only the identity from the metadata.
pub fn essence(document: &Value) -> Value {
    let mut essence = document.clone();
    if let Some(fields) = essence.as_object_mut() {
        fields.remove("status");
        let field = |name: &str| {
            document
                .pointer(&format!("/metadata/{name}"))
                .cloned()
                .unwrap_or_default()
        };
        fields.insert(
            "metadata".to_owned(),
            json!({ "namespace": field("namespace"), "name": field("name") }),
        );
        if let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) {
            spec.retain(|name, _| !UNSTORED.contains(&name.as_str()));
        }
    }
    essence
}

/// Returns the spec of a document with that essence, which keeps of `document` what an essence leaves out.
pub fn restored_spec(document: &Value, essence: &Value) -> Value {
    let mut spec = essence.get("spec").cloned().unwrap_or_default();
    if let Some(fields) = spec.as_object_mut() {
        for name in UNSTORED {
            if let Some(value) = document.pointer(&format!("/spec/{name}")) {
                fields.insert(name.to_owned(), value.clone());
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restored_spec_has_what_ran_and_keeps_how_it_is_run() {
        let old = json!({ "spec": { "crds": { "pond": 1 }, "suspend": true } });
        let now =
            json!({ "spec": { "crds": { "lake": 2 }, "revisionHistoryLimit": 9, "notes": {} } });
        assert_eq!(
            restored_spec(&now, &essence(&old)),
            json!({ "crds": { "pond": 1 }, "revisionHistoryLimit": 9 })
        );
    }
}
