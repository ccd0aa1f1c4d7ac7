//! The kinds that a document names.

use std::collections::BTreeSet;

use serde_json::Value;

use orkestra_language::api::ApiTypes;
use orkestra_plan::GroupKind;
use orkestra_plan::definitions;

/// Returns the kinds that a document names: every `kind` that has a `group` or an `apiVersion` beside it, but for the document's
/// own. The definition of Katalogs is large, and would be fetched for each of them.
pub fn kinds_named(document: &Value) -> BTreeSet<GroupKind> {
    let mut kinds = BTreeSet::new();
    let fields = document.as_object();
    for value in fields.into_iter().flat_map(|fields| fields.values()) {
        collect_kinds(value, &mut kinds);
    }
    kinds
}

fn collect_kinds(value: &Value, kinds: &mut BTreeSet<GroupKind>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_kinds(item, kinds)),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let group = text("group").or_else(|| Some(text("apiVersion")?.split_once('/')?.0));
            if let (Some(group), Some(kind)) = (group, text("kind")) {
                kinds.insert(GroupKind {
                    group: group.into(),
                    kind: kind.into(),
                });
            }
            // Of a built-in kind the kind alone may be written.
            let types = fields.get("apiTypes").cloned();
            let types = types.and_then(|types| serde_json::from_value::<ApiTypes>(types).ok());
            kinds.extend(types.as_ref().and_then(definitions::kind_named));
            fields
                .values()
                .for_each(|value| collect_kinds(value, kinds));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn api_types_and_custom_children_name_kinds() {
        let document = json!({ "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog", "spec": { "crds": { "pond": {
            "apiTypes": { "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" },
            "also": { "apiTypes": { "kind": "deploy" } },
            "operatorBox": { "onCreate": { "custom": [{ "apiVersion": "fish.example/v2", "kind": "Carp", "name": "x" }] } },
        }}}});
        let named: Vec<_> = kinds_named(&document)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            named,
            ["Deployment.apps", "Carp.fish.example", "Pond.water.example"]
        );
    }
}
