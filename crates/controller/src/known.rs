//! The cluster's CRDs for the kinds that a document names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_cluster::requests::{Cluster, Served};
use orkestra_engine::reconcile::crd::CrdRecord;
use orkestra_language::schema::PRESERVE;
use orkestra_object::value::Node;
use orkestra_plan::{
    GroupKind,
    definitions::{CrdShape, CrdVersion, Schemas},
};

use orkestra_operator::context::Crds;

/// Returns the CRDs of `kinds` that the cluster has, sorted by kind.
pub(crate) fn known(crds: &Crds, kinds: &BTreeSet<GroupKind>) -> Vec<Arc<CrdRecord>> {
    kinds.iter().filter_map(|kind| crds.get(kind)).collect()
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

fn shape(record: &CrdRecord) -> CrdShape {
    let versions = record.versions.iter().map(|version| CrdVersion {
        name: version.name.to_string(),
        served: version.served,
        storage: version.storage,
        status: version.has_status,
        scale: version.scale.clone(),
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
