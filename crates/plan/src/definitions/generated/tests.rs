use serde_json::json;

use super::*;
use crate::definitions::check_crd;

fn spec(entries: &serde_json::Value) -> KatalogSpec {
    serde_json::from_value(json!({ "crds": entries })).unwrap()
}

fn pond(version: &str, schema: &serde_json::Value) -> serde_json::Value {
    json!({
        "apiTypes": { "group": "water.example", "version": version, "kind": "Pond" },
        "schema": schema,
        "operatorBox": { "status": { "fields": [
            { "path": "depth", "value": "{{ .spec.depth }}" },
            { "path": "where.text", "value": "at {{ .spec.depth }} m" },
            { "path": "where.ready", "value": "{{ .children.configMap.ready }}" },
            { "path": "count", "value": "{{ .children.deployment.status.replicas }}", "type": "int" },
            { "path": "given", "value": "{{ .spec.depth }}" },
        ]}},
    })
}

#[test]
fn an_entry_s_schema_becomes_a_definition_that_the_api_server_accepts() {
    let schema = json!({
        "description": "A pond.",
        "spec": { "depth": "integer | default=3 minimum=1", "fish": "[]Fish", "name": "string | required=true" },
        "types": { "Fish": { "name": "string | required=true", "size": "number" } },
        "status": { "given": "string" },
        "validation": [{ "rule": "self.depth < 100", "message": "too deep" }],
        "printerColumns": [{ "name": "Depth", "jsonPath": ".spec.depth" }],
        "names": { "shortNames": ["pd"] },
    });
    let spec = spec(&json!({ "pond": pond("v1", &schema) }));
    let all = generated_crds(&spec);
    assert_eq!(all, generated_crds(&spec));
    let [generated] = all.as_slice() else {
        panic!("{all:?}");
    };
    let crd = &generated.crd;
    let found = check_crd(&Node::from(crd));
    assert!(found.is_empty(), "{found}");
    assert_eq!(crd["metadata"]["name"], "ponds.water.example");
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["pd"]));
    let version = &crd["spec"]["versions"][0];
    assert_eq!(version["subresources"], json!({ "status": {} }));
    assert_eq!(version["additionalPrinterColumns"][0]["type"], "integer");
    let root = &version["schema"]["openAPIV3Schema"];
    assert_eq!(root["required"], json!(["spec"]));
    let status = &root["properties"]["status"]["properties"];
    assert_eq!(status["depth"], json!({ "type": "integer" }));
    assert_eq!(status["count"], json!({ "type": "integer" }));
    assert_eq!(status["given"], json!({ "type": "string" }));
    let place = &status["where"]["properties"];
    assert_eq!(place["text"], json!({ "type": "string" }));
    assert_eq!(
        place["ready"],
        json!({ "x-kubernetes-preserve-unknown-fields": true })
    );
    assert!(status["conditions"].is_object() && status["observedGeneration"].is_object());
    assert_eq!(schema_problems(&spec.crds["pond"]), Vec::new());
}

#[test]
fn entries_of_one_kind_are_versions_of_one_definition() {
    let schema = json!({ "spec": { "depth": "integer" } });
    let both = spec(&json!({ "new": pond("v1", &schema), "old": pond("v1beta1", &schema) }));
    let all = generated_crds(&both);
    assert_eq!(all[0].entries, ["new", "old"]);
    let stored = |all: &[GeneratedCrd]| -> Vec<(String, bool)> {
        let versions = all[0].crd["spec"]["versions"].as_array().unwrap().iter();
        let of = |version: &serde_json::Value| {
            (
                version["name"].as_str().unwrap().to_owned(),
                version["storage"] == true,
            )
        };
        versions.map(of).collect()
    };
    assert_eq!(
        stored(&all),
        [("v1".to_owned(), true), ("v1beta1".to_owned(), false)]
    );
    let older = json!({ "spec": { "depth": "integer" }, "storage": true });
    let both = spec(&json!({ "new": pond("v1", &schema), "old": pond("v1beta1", &older) }));
    let all = generated_crds(&both);
    assert_eq!(
        stored(&all),
        [("v1".to_owned(), false), ("v1beta1".to_owned(), true)]
    );
    assert!(
        rank("v2") > rank("v1")
            && rank("v1") > rank("v3beta1")
            && rank("v1beta2") > rank("v1beta1")
            && rank("v1beta1") > rank("v9alpha1")
    );
}

#[test]
fn a_complete_schema_gets_the_status() {
    let complete = json!({ "openAPIV3Schema": { "type": "object", "properties": {
        "spec": { "type": "object", "properties": { "port": { "x-kubernetes-int-or-string": true } } },
    }}});
    let spec = spec(&json!({ "pond": pond("v1", &complete) }));
    let all = generated_crds(&spec);
    let found = check_crd(&Node::from(&all[0].crd));
    assert!(found.is_empty(), "{found}");
    let root = &all[0].crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert!(root["properties"]["status"]["properties"]["conditions"].is_object());
}

#[test]
fn problems_are_those_of_the_fields_and_those_of_the_api_server() {
    for (schema, path, expected) in [
        (
            json!({ "spec": { "depth": "int" } }),
            "schema.spec.depth",
            "not declared",
        ),
        (
            json!({ "spec": { "a": "string" }, "openAPIV3Schema": { "type": "object" } }),
            "schema.spec",
            "mutually exclusive",
        ),
        (
            json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "int" } } } }),
            "schema",
            "properties.spec.type: `int` is not a type",
        ),
        (
            json!({ "spec": { "a": "integer" }, "validation": [{ "rule": "self.b > 3" }] }),
            "schema",
            "the rule reads `b`",
        ),
        (
            json!({ "printerColumns": [{ "name": "A", "jsonPath": ".spec.a", "type": "text" }] }),
            "schema.printerColumns",
            "`text` is not one of",
        ),
    ] {
        let spec = spec(&json!({ "pond": pond("v1", &schema) }));
        let problems = schema_problems(&spec.crds["pond"]);
        assert_eq!(problems.len(), 1, "{schema}: {problems:?}");
        assert_eq!(problems[0].path.to_string(), path, "{problems:?}");
        assert!(problems[0].message.contains(expected), "{problems:?}");
    }
}
