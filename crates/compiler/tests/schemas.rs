//! The shipped schemas of Kubernetes' own kinds, compared with other sources.

#![allow(
    clippy::unwrap_used,
    reason = "a definition that cannot be read is a fault of the test"
)]

use std::{fs, path::Path};

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::{diagnostics::Diagnostics, document::parse_stream, schema::BuiltIn};
use orkestra_plan::{GroupKind, KatalogRef, built_in, definitions::Schemas};
use serde_json::json;

#[test]
fn plurals_and_scopes_are_those_of_the_table() {
    for known in BuiltIn::new().kinds() {
        // A `ComponentStatus` can only be listed.
        if known.kind == "ComponentStatus" {
            continue;
        }
        let kind = GroupKind {
            group: known.group.as_str().into(),
            kind: known.kind.as_str().into(),
        };
        let expected = Some((known.plural.as_str(), known.namespaced));
        assert_eq!(built_in(&kind), expected, "{kind}");
    }
}

/// Objects that the API server accepts, and objects that Orkestra itself applies, are no mistake when they are written as a
/// child.
#[test]
fn objects_that_a_server_takes_raise_no_alarm() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("tests/inputs/schemas/manifests.yaml")];
    files.push(root.join("../../config/base/rbac.yaml"));
    files.push(root.join("../../config/base/deployment.yaml"));
    let mut seen = 0;
    for file in files {
        let stream = parse_stream("manifests.yaml", &fs::read_to_string(&file).unwrap());
        assert!(stream.problems.is_empty(), "{}", stream.problems);
        for source in stream.sources {
            let object = source.tree.to_json();
            let spec = json!({ "crds": { "pond": {
                "apiTypes": { "group": "lake.example", "version": "v1", "kind": "Lake", "plural": "lakes" },
                "operatorBox": { "onCreate": { "custom": [object] } },
            } } });
            let spec = serde_json::from_value(spec).unwrap();
            let katalog = KatalogRef::new("a".to_owned(), "b".to_owned());
            let compiled =
                compile::katalog(&katalog, &spec, &Schemas::default(), &Library::default());
            let reported = compiled.map_or_else(
                |problems| problems.to_string(),
                |(_, warnings)| Diagnostics(warnings).to_string(),
            );
            assert_eq!(reported, "", "{object}");
            seen += 1;
        }
    }
    assert!(seen > 25, "{seen}");
}
