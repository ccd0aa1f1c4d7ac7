//! What unit tests share: the plans of short Katalogs, and the comparison of committed documents with what they are generated from.
//!
//! Not shipped: only tests depend on it.

#![allow(
    clippy::unwrap_used,
    reason = "a fixture that cannot be read is a fault of the test"
)]

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::document::read_stream;
use orkestra_plan::{KatalogRef, OperatorPlan, Plan, definitions::Schemas};

/// Returns the folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a committed document with what it is generated from; `UPDATE=1` writes it.
///
/// # Panics
/// They differ.
pub fn assert_document(path: &str, expected: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, expected).unwrap();
    }
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == expected,
        "{path} is stale; run the test again with UPDATE=1"
    );
}

/// A Katalog with an operator of `Pond.v1.water.example`, which makes a Deployment, a Secret and an Ingress for each pond.
const KATALOG: &str = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: reeds, namespace: marsh }
spec:
  crds:
    NAME:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      namespaced: true
      operatorBox:
        reconciler: { workers: 3, resync: 90s }
        onReconcile:
          deployments: [{ image: "registry.example/pump:1" }]
          secrets: [{}]
          custom:
            - apiVersion: networking.k8s.io/v1
              kind: Ingress
              metadata: { name: "{{ .metadata.name }}" }
              spec: { ingressClassName: reeds }
"#;

/// The operator of that name in that Katalog.
pub fn operator_plan(katalog: &KatalogRef, name: &str) -> Arc<OperatorPlan> {
    compiled_as(katalog, &KATALOG.replace("NAME", name)).operators[0].clone()
}

/// The plan of the Katalog in a text.
pub fn compiled(text: &str) -> Plan {
    let katalog = KatalogRef::new("default".to_owned(), "waters".to_owned());
    compiled_as(&katalog, text)
}

/// The plan of the Katalog in a text, as that of `katalog`.
///
/// # Panics
/// The text is not a valid Katalog.
pub fn compiled_as(katalog: &KatalogRef, text: &str) -> Plan {
    let (documents, _) = read_stream("katalog.yaml", text).unwrap();
    let document = &documents.katalogs[0];
    let (schemas, library) = (Schemas::default(), Library::default());
    let (plan, _) = compile::katalog(katalog, &document.spec, &schemas, &library).unwrap();
    plan
}
