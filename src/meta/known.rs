//! The cluster's CRDs for the kinds that a document names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_cluster::{
    requests::{Cluster, Served},
    watch::Crds,
};
use orkestra_core::{
    api::ApiTypes,
    definitions::{self, CrdShape, CrdVersion, Schemas},
    plan::GroupKind,
    reconcile::crd::CrdRecord,
    schema::PRESERVE,
    value::Node,
};
use serde_json::Value;

/// Returns the CRDs of `kinds` that the cluster has, sorted by kind.
pub(crate) fn known(crds: &Crds, kinds: &BTreeSet<GroupKind>) -> Vec<Arc<CrdRecord>> {
    kinds.iter().filter_map(|kind| crds.get(kind)).collect()
}

/// Returns the kinds that a document names: every `kind` that has a `group` or an `apiVersion` beside it, but for the document's
/// own. The definition of Katalogs is large, and would be fetched for each of them.
pub(crate) fn kinds_named(document: &Value) -> BTreeSet<GroupKind> {
    let mut kinds = BTreeSet::new();
    for value in document
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.values())
    {
        collect_kinds(value, &mut kinds);
    }
    kinds
}

/// Returns the schemas in these records, for the compiler.
pub(crate) fn schemas(records: &[Arc<CrdRecord>]) -> Schemas {
    let mut schemas = Schemas::default();
    for record in records {
        schemas.insert(shape(record));
    }
    schemas
}

/// Returns the full schemas, which are fetched one by one and kept only for the compilation. If one cannot be fetched, the
/// record is used.
pub(crate) async fn whole_schemas(cluster: &Cluster, records: &[Arc<CrdRecord>]) -> Schemas {
    let mut schemas = schemas(records);
    for record in records {
        match cluster.find(&Served::crds(), &record.id.key.name).await {
            Ok(Some(crd)) => {
                if let Ok(shape) = CrdShape::from_crd(&crd) {
                    schemas.insert(shape);
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(crd = %record.id.key, %error, "cannot read a CRD");
            }
        }
    }
    schemas
}

/// Returns the storage version of each of `kinds` that the cluster has.
pub(crate) fn storage(crds: &Crds, kinds: &BTreeSet<GroupKind>) -> BTreeMap<GroupKind, String> {
    let stored = |kind: &GroupKind| {
        let record = crds.get(kind)?;
        let version = record.versions.iter().find(|version| version.storage)?;
        Some((kind.clone(), version.name.to_string()))
    };
    kinds.iter().filter_map(stored).collect()
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

fn shape(record: &CrdRecord) -> CrdShape {
    let versions = record.versions.iter().map(|version| CrdVersion {
        name: version.name.to_string(),
        served: version.served,
        storage: version.storage,
        status: version.has_status,
        schema: Arc::new(schema(version.status_schema.as_deref())),
    });
    CrdShape {
        group: record.group.to_string(),
        kind: record.kind.to_string(),
        plural: record.plural.to_string(),
        namespaced: record.namespaced,
        versions: versions.collect(),
    }
}

/// Returns a schema that describes the status as the record does, and leaves everything else open.
fn schema(status: Option<&Node>) -> Node {
    // Without a schema the API server drops the status completely.
    let dropped = || Node::object([("type", Node::from("object"))]);
    let status = status.cloned().unwrap_or_else(dropped);
    Node::object([
        ("type", Node::from("object")),
        (PRESERVE, Node::Bool(true)),
        ("properties", Node::object([("status", status)])),
    ])
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
