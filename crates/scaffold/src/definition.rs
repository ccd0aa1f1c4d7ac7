//! Generates the CRD of a draft: a spec with defaults, and a status.

use serde_json::{Map, Value};

use super::CustomKind;
use orkestra_language::diagnostics::FieldPath;
use orkestra_plan::definitions::{
    CrdNames, add_status, crd_document, object_schema, root_of, version_document,
};

/// The version of a generated kind.
pub(crate) const VERSION: &str = "v1alpha1";

/// Returns the CRD of a namespaced kind with that schema for its spec, and additional status fields.
pub(crate) fn definition(kind: &CustomKind, spec: &Value, status: &Map<String, Value>) -> Value {
    let names = CrdNames {
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
        singular: kind.singular.clone(),
        is_namespaced: true,
        ..CrdNames::default()
    };
    let mut root = root_of(spec);
    add_status(&mut root, status.clone());
    let version = version_document(&kind.version, true, &root, Vec::new());
    crd_document(&names, &[version])
}

/// Returns the schema of an object whose fields have short schemas. What is not converted is added to `left`.
pub(crate) fn simple_schema(fields: &Value, types: &Value, left: &mut Vec<String>) -> Value {
    let mut problems = Vec::new();
    let at = FieldPath::root().field("spec");
    let schema = object_schema(fields, types, &at, &mut problems);
    let problems = problems.into_iter();
    left.extend(problems.map(|one| format!("{}: {}", one.path, one.message)));
    schema
}
