//! Compiling: properties that hold for generated Katalogs.

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::diagnostics::Diagnostics;
use orkestra_plan::definitions::Schemas;
use proptest::prelude::*;
use serde_json::json;

use super::katalog;

proptest! {
    /// Any text in any field gives a plan or diagnostics.
    #[test]
    fn no_text_makes_compiling_panic(texts in prop::collection::vec("\\PC{0,12}|[-a-z0-9./{}|(). ]{0,20}|\\{\\{ \\.[a-z.]{0,12} \\}\\}", 12)) {
        let t = |at: usize| texts[at].as_str();
        let spec = json!({ "crds": { t(0): {
            "apiTypes": { "group": t(1), "version": "v1", "kind": "Pond", "plural": t(2) },
            "operatorBox": { "onReconcile": {
                "deployments": [{
                    "name": t(3), "image": t(4), "port": t(5), "replicas": t(6), "env": { t(7): t(8) },
                    "labels": { t(9): t(10) }, "when": [{ "field": t(11), "equals": t(1) }],
                }],
                "services": [{ "name": t(3), "type": t(4) }],
                "custom": [{ "apiVersion": t(1), "kind": t(5), "metadata": { "name": t(3) }, t(6): { t(7): [t(8)] } }],
            } },
        } } });
        if let Ok(spec) = serde_json::from_value(spec) {
            let _ = compile::katalog(&katalog(), &spec, &Schemas::default(), &Library::default());
        }
    }
}

proptest! {
    /// Without a definition the types of `spec` and `status` are unknown, and nothing is reported about their use.
    #[test]
    fn without_a_definition_no_schema_refuses_anything(
        root in "spec|status", path in "[a-z]{1,5}(\\.[a-z]{1,5}){0,3}", word in "[a-z]{1,5}", number in 0..9,
    ) {
        let read = format!("{root}.{path}");
        let spec = json!({ "crds": { "pond": {
            "apiTypes": { "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" },
            "operatorBox": {
                "onReconcile": {
                    "deployments": [{
                        "image": format!("{{{{ .{read} }}}}"), "replicas": format!("{{{{ .{read} }}}}"),
                        "port": format!("{{{{ .{read} | default {number} }}}}"),
                        "when": [{ "field": read, "equals": word }, { "field": format!("{{{{ len .{read} }}}}"), "notEquals": number }],
                    }],
                    "configMaps": [{ "data": {
                        "a": format!("{{{{ if eq .{read} \"{word}\" }}}}{{{{ toUpper .{read}.x }}}}{{{{ end }}}}"),
                        "b": format!("{{{{ range .{read} }}}}{{{{ .{word} }}}}{{{{ else }}}}{{{{ eq .{read} {number} }}}}{{{{ end }}}}"),
                    } }],
                },
                "status": { "fields": [{ "path": format!("written{word}"), "value": format!("{{{{ .{read} }}}}") }] },
            },
        } } });
        let spec = serde_json::from_value(spec).unwrap();
        let compiled = compile::katalog(&katalog(), &spec, &Schemas::default(), &Library::default());
        let warnings = compiled.map(|(_, warnings)| Diagnostics(warnings).to_string());
        prop_assert_eq!(warnings.map_err(|problems| problems.to_string()), Ok(String::new()));
    }
}
