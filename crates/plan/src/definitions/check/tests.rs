use serde_json::json;

use super::check_crd;
use orkestra_language::document::parse_stream;
use orkestra_object::value::Node;

#[test]
fn definitions_are_refused_as_by_the_api_server() {
    let text = include_str!("../../../tests/inputs/definitions/definitions.yaml");
    let stream = parse_stream("definitions.yaml", text);
    assert!(stream.problems.is_empty(), "{}", stream.problems);
    let table = stream.sources[0].tree.to_json();
    let mut wrong = Vec::new();
    for row in table.as_array().unwrap() {
        let found = check_crd(&Node::from(&row["object"]));
        if found.has_errors() != row["refused"].as_bool().unwrap() {
            wrong.push(format!("{}: {found}", row["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn our_own_definitions_are_valid() {
    for text in [
        include_str!("../../../../../crds/katalogs.yaml"),
        include_str!("../../../../../crds/komposers.yaml"),
        include_str!("../../../../../crds/motifs.yaml"),
    ] {
        for source in parse_stream("crd.yaml", text).sources {
            let found = check_crd(&Node::from(&source.tree.to_json()));
            assert!(found.is_empty(), "{found}");
        }
    }
}

#[test]
fn a_misspelt_type_gets_its_name() {
    let crd = json!({ "metadata": { "name": "ponds.water.example" }, "spec": {
        "group": "water.example", "scope": "Namespaced", "names": { "kind": "Pond", "plural": "ponds" },
        "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
            "type": "object", "properties": { "spec": { "type": "object", "properties": { "a": { "type": "int" } } } },
        }}}],
    }});
    let found = check_crd(&Node::from(&crd));
    let at = "spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.a.type";
    assert_eq!(found.0.len(), 1, "{found}");
    assert_eq!(found.0[0].path.to_string(), at);
    assert_eq!(found.0[0].hint.as_deref(), Some("did you mean `integer`?"));
}
