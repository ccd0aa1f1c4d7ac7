use serde_json::json;

use super::super::CrdShape;
use orkestra_language::{
    diagnostics::{Code, Severity},
    document::parse_stream,
};
use orkestra_object::value::Node;

fn read(text: &str) -> serde_json::Value {
    let stream = parse_stream("table.yaml", text);
    assert!(stream.problems.is_empty(), "{}", stream.problems);
    stream.sources[0].tree.to_json()
}

fn shape(spec: &serde_json::Value) -> CrdShape {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "spec": {
            "group": "water.example", "scope": "Namespaced", "names": { "kind": "Pond", "plural": "ponds" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": {
                "type": "object", "properties": { "spec": spec },
            }}}],
        },
    });
    CrdShape::from_crd(&Node::from(&crd)).unwrap()
}

fn problems(spec: &serde_json::Value, value: &serde_json::Value) -> Vec<String> {
    let pond = json!({
        "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "one" }, "spec": value,
    });
    let found = shape(spec).check_object(&Node::from(&pond));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn custom_resources_are_refused_as_by_the_api_server() {
    let tank = read(include_str!("../../../tests/inputs/definitions/tank.yaml"));
    let shape = CrdShape::from_crd(&Node::from(&tank)).unwrap();
    let table = read(include_str!(
        "../../../tests/inputs/definitions/resources.yaml"
    ));
    let mut wrong = Vec::new();
    for row in table.as_array().unwrap() {
        let mut object = row["object"].clone();
        object["apiVersion"] = json!("checks.example.com/v1");
        object["kind"] = json!("Tank");
        let found = shape.check_object(&Node::from(&object));
        let unchecked = found.iter().find(|one| one.severity == Severity::Warning);
        assert_eq!(unchecked, None, "{}", row["name"]);
        if found.has_errors() != row["refused"].as_bool().unwrap() {
            wrong.push(format!("{}: {found}", row["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_schema_s_verdict_is_that_of_another_validator() {
    let tank = read(include_str!("../../../tests/inputs/definitions/tank.yaml"));
    let version = &tank["spec"]["versions"][0];
    let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let fields = spec["properties"].as_object().unwrap().clone();
    let values = [
        json!(-1),
        json!(0),
        json!(1),
        json!(7),
        json!(10),
        json!(0.5),
        json!(true),
        json!(""),
        json!("a"),
        json!("abc"),
        json!("open"),
        json!("abcdef"),
        json!([]),
        json!(["a", "b"]),
        json!(["a", 1]),
        json!(["a", "b", "c", "d"]),
        json!({ "a": "x" }),
        json!({ "a": "x", "b": "y" }),
        json!({ "a": "x", "b": "y", "c": "z" }),
        json!({ "a": 1 }),
    ];
    let mut compared = 0;
    for (name, field) in fields {
        // What other validators do not have.
        if [
            "ratio", "port", "address", "when", "mail", "lasts", "whole", "inner", "either",
            "small",
        ]
        .contains(&&*name)
        {
            continue;
        }
        let validator = jsonschema::validator_for(&field).unwrap();
        let schema = json!({ "type": "object", "properties": { &*name: field } });
        for value in &values {
            let ours = problems(&schema, &json!({ &*name: value }));
            assert_eq!(
                ours.is_empty(),
                validator.is_valid(value),
                "{name}: {value}: {ours:?}"
            );
            compared += 1;
        }
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn a_rule_that_cannot_be_evaluated_has_neither_passed_nor_failed() {
    let slow = "self.all(a, self.all(b, self.all(c, self.all(d, self.all(e, a == b || c == d || e == a)))))";
    for (rule, why) in [
        ("quantity(self[0]).isInteger()", "not checked"),
        ("self.isSorted()", "not checked"),
        (slow, "too many steps"),
    ] {
        let schema = json!({ "type": "object", "properties": { "words": {
            "type": "array", "items": { "type": "string" }, "x-kubernetes-validations": [{ "rule": rule }],
        }}});
        let words: Vec<String> = (0..60).map(|number| format!("w{number}")).collect();
        let found = problems(&schema, &json!({ "words": words }));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("warning[ORK0903]"), "{found:?}");
        assert!(found[0].contains(why), "{found:?}");
    }
    // Texts that CEL reads as times are not compared as texts.
    let schema = json!({ "type": "object",
        "properties": { "a": { "type": "string", "format": "date-time" }, "b": { "type": "string", "format": "date-time" } },
        "x-kubernetes-validations": [{ "rule": "self.a < self.b" }],
    });
    let times = json!({ "a": "2030-01-01T00:00:00+09:00", "b": "2030-01-01T00:00:00Z" });
    let found = problems(&schema, &times);
    assert!(found[0].starts_with("warning[ORK0903]"), "{found:?}");
}

#[test]
fn rules_read_numbers_of_the_schema_s_type_and_missing_keys_fail() {
    let schema = json!({ "type": "object",
        "properties": { "a": { "type": "integer" }, "b": { "type": "number" } },
        "x-kubernetes-validations": [{ "rule": "self.a + 1 > 0 && self.b * 2.0 > 0.0" }],
    });
    assert_eq!(
        problems(&schema, &json!({ "a": 1, "b": 2 })),
        Vec::<String>::new()
    );
    let found = problems(&schema, &json!({ "b": 2 }));
    assert!(
        found[0].contains("No such key") || found[0].contains("no such key"),
        "{found:?}"
    );
}

#[test]
fn a_problem_names_the_field_and_what_to_write() {
    let schema = json!({ "type": "object", "properties": {
        "depth": { "type": "integer" }, "shade": { "type": "string", "enum": ["light", "dark"] },
    }});
    let pond = json!({
        "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "one" },
        "spec": { "dept": 1, "shade": "ligth", "depth": "3" },
    });
    let found = shape(&schema).check_object(&Node::from(&pond));
    let texts: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(found.iter().all(|one| one.code == Code::RefusedResource));
    for expected in [
        "spec.dept: the schema has no such field (hint: did you mean `depth`?)",
        "spec.shade: `ligth` is not one of light, dark (hint: did you mean `light`?)",
        "spec.depth: expected an integer, found the string \"3\"",
    ] {
        assert!(
            texts.iter().any(|text| text.contains(expected)),
            "{expected}: {texts:?}"
        );
    }
}

#[test]
fn a_version_that_is_not_served_is_refused() {
    let pond =
        json!({ "apiVersion": "water.example/v2", "kind": "Pond", "metadata": { "name": "one" } });
    let found = shape(&json!({ "type": "object" })).check_object(&Node::from(&pond));
    assert!(found.0[0].message.contains("not served"), "{found}");
}
