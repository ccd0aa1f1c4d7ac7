//! Operators from Katalogs, and their custom resources.

use std::sync::Arc;

use orkestra_compiler::{compile, scope::Library};
use orkestra_engine::reconcile::{
    crd_status::{CrdStatus, StatusShape},
    record::{CrRecord, kept_paths},
    status::written_paths,
};
use orkestra_language::document::read_stream;
use orkestra_object::value::Node;
use orkestra_plan::{
    KatalogRef, OperatorPlan,
    definitions::{CrdShape, Schemas},
};
use serde_json::{Value, json};

/// The namespace of the custom resources.
pub(crate) const NAMESPACE: &str = "east";
/// The name of the custom resources.
pub(crate) const NAME: &str = "pond";
/// The uid of the custom resources.
pub(crate) const UID: &str = "0f6a3c52-8a5e-4a0e-9d6e-2b7c1d9e4f10";
/// The field manager of the operators.
pub(crate) const MANAGER: &str = "orkestra/ponds.water.example";

/// Returns the operator of a Katalog, which is given as a complete document. Motifs may follow it.
pub(crate) fn of_document(text: &str, schemas: &Schemas) -> Arc<OperatorPlan> {
    let (documents, _) =
        read_stream("katalog.yaml", text).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let katalog = KatalogRef::new("default".into(), documents.katalogs[0].name.clone());
    let spec = &documents.katalogs[0].spec;
    let mut library = Library::default();
    for _ in 0..=documents.motifs.len() {
        for reference in library.missing(spec) {
            let mut motifs = documents.motifs.iter();
            if let Some(motif) = motifs.find(|motif| *motif.name == *reference.text) {
                library.put_motif(reference, motif);
            }
        }
    }
    let (plan, _) = compile::katalog(&katalog, spec, schemas, &library)
        .unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    plan.operators[0].clone()
}

/// Returns the operator of namespaced Ponds whose `operatorBox` is `declared`. Its children may be in any namespace.
pub(crate) fn operator(declared: &str) -> Arc<OperatorPlan> {
    operator_with("allowedTargets: ['*']", declared)
}

/// Returns the same operator with this line in the entry.
pub(crate) fn operator_with(line: &str, declared: &str) -> Arc<OperatorPlan> {
    let entry = format!("true\n      {line}");
    of_document(&katalog(&entry, declared), &Schemas::default())
}

/// Returns the same operator for cluster-scoped Ponds.
pub(crate) fn cluster_operator(declared: &str) -> Arc<OperatorPlan> {
    of_document(&katalog("false", declared), &Schemas::default())
}

/// Returns the operator of Ponds whose definition has this schema of the status.
pub(crate) fn operator_with_schema(declared: &str, status: &Value) -> Arc<OperatorPlan> {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {
            "group": "water.example",
            "scope": "Namespaced",
            "names": { "kind": "Pond", "plural": "ponds" },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "properties": {
                    "spec": { "x-kubernetes-preserve-unknown-fields": true }, "status": status,
                } } },
            }],
        },
    });
    let mut schemas = Schemas::default();
    schemas.insert(CrdShape::from_crd(&Node::from(&crd)).unwrap());
    of_document(&katalog("true", declared), &schemas)
}

fn katalog(namespaced: &str, declared: &str) -> String {
    let lines: Vec<String> = declared
        .lines()
        .map(|line| format!("        {line}"))
        .collect();
    let indented = lines.join("\n");
    format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
      namespaced: {namespaced}
      operatorBox:
{indented}"
    )
}

/// Returns a Pond with this spec and status.
pub(crate) fn pond(spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": "water.example/v1",
        "kind": "Pond",
        "metadata": {
            "name": NAME, "namespace": NAMESPACE, "uid": UID, "resourceVersion": "70", "generation": 4,
            "labels": { "orkestra.orkspace.io/managed": "true" },
        },
        "spec": spec,
        "status": status,
    })
}

/// Returns a cluster-scoped Pond with this spec.
pub(crate) fn cluster_pond(spec: &Value) -> Value {
    let mut object = pond(spec, &json!({}));
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("namespace");
    object
}

/// Returns the operator's record of a custom resource.
pub(crate) fn record(plan: &OperatorPlan, object: &Value) -> Arc<CrRecord> {
    let paths = kept_paths(&plan.reads.cr, written_paths(plan).into_iter());
    Arc::new(CrRecord::read(&Node::from(object), &paths).unwrap())
}

/// Returns the `CrdStatus` of a definition that preserves every status and has the status subresource.
pub(crate) fn open_crd_status() -> CrdStatus {
    crd_status(&json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }))
}

/// Returns the `CrdStatus` of a definition with this schema of the status.
pub(crate) fn crd_status(status: &Value) -> CrdStatus {
    CrdStatus {
        namespaced: true,
        has_status: true,
        status: StatusShape::new(Some(Arc::new(Node::from(status)))),
    }
}
