//! What the cluster's CRDs say, for compilation.

use std::{sync::Arc, time::Duration};

use orkestra_core::{
    plan::{CrdShape, CrdVersion, Schemas},
    reconcile::crd::CrdRecord,
    value::{Key, Map, Node},
};
use tokio::sync::watch;

use crate::runtime::context::Context;

/// How long changes are gathered: CRDs are usually applied several at a time.
const PAUSE: Duration = Duration::from_millis(200);

/// Follows the CRDs of the cluster; the first value knows none. Ends with the last receiver.
pub fn follow_schemas(context: Arc<Context>) -> watch::Receiver<Arc<Schemas>> {
    let (sender, schemas) = watch::channel(Arc::default());
    tokio::spawn(async move {
        let mut changed = context.crds.changed();
        tokio::select! {
            () = context.crds.synced() => {}
            () = sender.closed() => return,
        }
        loop {
            changed.mark_unchanged();
            sender.send_replace(Arc::new(gather(&context.crds.all())));
            tokio::select! {
                more = changed.changed() => if more.is_err() { return },
                () = sender.closed() => return,
            }
            tokio::time::sleep(PAUSE).await;
        }
    });
    schemas
}

/// Of two CRDs for one kind, the one whose names are accepted counts.
fn gather(records: &[Arc<CrdRecord>]) -> Schemas {
    let mut records: Vec<&CrdRecord> = records.iter().map(AsRef::as_ref).filter(|record| !record.deleting).collect();
    records.sort_by_key(|record| (record.names_accepted, record.established));
    let mut schemas = Schemas::default();
    for record in records {
        schemas.insert(shape(record));
    }
    schemas
}

fn shape(record: &CrdRecord) -> CrdShape {
    let versions = record.versions.iter().map(|version| CrdVersion {
        name: version.name.to_string(),
        served: version.served,
        storage: version.storage,
        status: version.has_status,
        schema: under_status(version.status_schema.clone()),
    });
    CrdShape {
        group: record.group.to_string(),
        kind: record.kind.to_string(),
        plural: record.plural.to_string(),
        namespaced: record.namespaced,
        versions: versions.collect(),
    }
}

/// The schema of a whole object of which only `status` is known; without one the API server drops `status`.
fn under_status(status: Option<Node>) -> Node {
    let one = |key: &str, value| Node::Map([(Key::from(key), value)].into_iter().collect::<Map>());
    match status {
        Some(status) => one("properties", one("status", status)),
        None => Node::Map(Map::default()),
    }
}

#[cfg(test)]
mod tests {
    use orkestra_core::plan::{Coerce, GroupKind, StatusType};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_definition_of_the_cluster_says_what_its_manifest_says() {
        let manifest = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "ponds.water.example", "uid": "u", "resourceVersion": "7"},
            "spec": {
                "group": "water.example", "scope": "Namespaced",
                "names": {"kind": "Pond", "plural": "ponds"},
                "versions": [
                    {"name": "v1", "served": true, "storage": true, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"status": {"type": "object", "properties": {
                            "depth": {"type": "integer"}, "name": {"type": "string"}}}}}}},
                    {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
                ],
            },
        });
        let node = Node::from(&manifest);
        let whole = CrdShape::from_crd(&node).unwrap();
        let schemas = gather(&[Arc::new(CrdRecord::read(&node).unwrap())]);
        let kept = schemas.kind(&GroupKind::parse("Pond.water.example")).unwrap();
        assert_eq!((kept.plural.as_str(), kept.namespaced), ("ponds", true));
        for version in ["v1", "v2"] {
            for path in ["depth", "name", "nothing"] {
                let path = path.parse().unwrap();
                let said = |shape: &CrdShape| shape.version(version).unwrap().status_type(&path);
                assert_eq!(said(kept), said(&whole), "{version} {path}");
            }
        }
        let depth = kept.version("v1").unwrap().status_type(&"depth".parse().unwrap());
        assert_eq!(depth, StatusType::Takes(Coerce::Int));
    }
}
