//! Who suspended a custom resource, for its condition.

use orkestra_language::api::names;
use orkestra_object::value::Node;

/// Returns the field manager that set the annotation that suspends `object`, and when: `kubectl-annotate at 2026-03-01T08:00:00Z`.
/// `None` if the managed fields do not say.
///
/// Source: Kubernetes, "Server-Side Apply", field management.
pub fn set_by(object: &Node) -> Option<String> {
    let annotation = format!("f:{}", names::ANNOTATION_SUSPEND);
    let mut entries = object.meta("managedFields")?.as_list()?.iter();
    let entry = entries.find(|entry| {
        let metadata = entry
            .get("fieldsV1")
            .and_then(|fields| fields.get("f:metadata"));
        let annotations = metadata.and_then(|metadata| metadata.get("f:annotations"));
        annotations.is_some_and(|annotations| annotations.get(&annotation).is_some())
    })?;
    let manager = entry.get("manager")?.as_str()?;
    let time = entry.get("time").and_then(Node::as_str);
    let time = time.map(|time| format!(" at {time}"));
    Some(format!("`{manager}`{}", time.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manager_of_the_annotation_is_named() {
        let fields =
            json!({ "f:metadata": { "f:annotations": { "f:orkestra.orkspace.io/suspend": {} } } });
        let object = |entries| Node::from(&json!({ "metadata": { "managedFields": entries } }));
        let other = json!({ "manager": "helm", "time": "2026-03-01T07:00:00Z", "fieldsV1": { "f:spec": {} } });
        let own = json!({ "manager": "kubectl-annotate", "time": "2026-03-01T08:00:00Z", "fieldsV1": fields });
        assert_eq!(
            set_by(&object(json!([other, own]))).as_deref(),
            Some("`kubectl-annotate` at 2026-03-01T08:00:00Z")
        );
        assert_eq!(set_by(&object(json!([other]))), None);
        assert_eq!(set_by(&Node::from(&json!({ "metadata": {} }))), None);
    }
}
