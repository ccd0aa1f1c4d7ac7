//! Changes of definitions, and what they do to stored objects.

use serde_json::json;

use super::*;

fn shape(versions: &Value) -> CrdShape {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "ponds.water.example" },
        "spec": {
            "group": "water.example", "scope": "Namespaced",
            "names": { "kind": "Pond", "plural": "ponds" }, "versions": versions,
        },
    });
    CrdShape::from_crd(&Node::from(&crd)).unwrap()
}

fn version(name: &str, is_stored: bool, spec: &Value) -> Value {
    json!({
        "name": name, "served": true, "storage": is_stored, "subresources": { "status": {} },
        "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } },
    })
}

fn one(spec: &Value) -> CrdShape {
    shape(&json!([version("v1", true, spec)]))
}

fn change(old: &Value, new: &Value) -> Vec<String> {
    let v1 = ["v1".to_owned()];
    match compare(&one(old), &one(new), &v1) {
        DefinitionChange::Narrowed(lines) => lines,
        DefinitionChange::Widened => Vec::new(),
        DefinitionChange::Impossible(why) => panic!("{why}"),
    }
}

fn object(fields: &Value) -> Value {
    json!({ "type": "object", "properties": fields })
}

#[test]
fn a_change_that_no_value_can_notice_is_wider() {
    for (old, new) in [
        (json!({ "type": "integer" }), json!({ "type": "number" })),
        (
            json!({ "type": "integer", "minimum": 2 }),
            json!({ "type": "integer", "minimum": 1 }),
        ),
        (
            json!({ "type": "integer", "maximum": 2 }),
            json!({ "type": "integer" }),
        ),
        (
            json!({ "type": "string", "enum": ["a"] }),
            json!({ "type": "string", "enum": ["b", "a"] }),
        ),
        (
            json!({ "type": "string", "enum": ["a"] }),
            json!({ "type": "string" }),
        ),
        (
            json!({ "type": "string", "pattern": "a" }),
            json!({ "type": "string", "default": "x" }),
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "nullable": true, "description": "d" }),
        ),
        (
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }),
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": { "type": "string" } } }),
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        ),
    ] {
        let lines = change(&object(&json!({ "f": old })), &object(&json!({ "f": new })));
        assert_eq!(lines, <[String; 0]>::default(), "{old} to {new}");
    }
}

// Over 60 lines: a table of changes.
#[test]
fn a_change_that_may_lose_or_invalidate_a_value_has_a_line() {
    for (old, new, said) in [
        (
            json!({ "type": "string" }),
            json!({ "type": "integer" }),
            "`type` is \"integer\", and was \"string\"",
        ),
        (
            json!({ "type": "number" }),
            json!({ "type": "integer" }),
            "`type` is \"integer\"",
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "integer", "minimum": 1 }),
            "`minimum` is 1",
        ),
        (
            json!({ "type": "integer", "maximum": 2 }),
            json!({ "type": "integer", "maximum": 1 }),
            "`maximum` is 1, and was 2",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "enum": ["a"] }),
            "`enum`",
        ),
        (
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!({ "type": "string", "enum": ["a"] }),
            "`enum`",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "pattern": "^a" }),
            "`pattern`",
        ),
        (
            json!({ "type": "string", "nullable": true }),
            json!({ "type": "string" }),
            "`nullable` is removed",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            json!({ "type": "object", "properties": {} }),
            "spec.f.a is removed",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "string" } } }),
            "spec.f requires `a`",
        ),
        (
            json!({ "type": "array", "items": { "type": "object", "properties": { "a": { "type": "string" } } } }),
            json!({ "type": "array", "items": { "type": "object", "properties": {} } }),
            "spec.f[].a is removed",
        ),
        (
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            "spec.f",
        ),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            json!({ "type": "object" }),
            "`additionalProperties` is removed",
        ),
        (
            json!({ "type": "string" }),
            json!({ "type": "string", "x-kubernetes-validations": [{ "rule": "self != ''" }] }),
            "spec.f has a new rule",
        ),
    ] {
        let lines = change(&object(&json!({ "f": old })), &object(&json!({ "f": new })));
        let is_said = lines.iter().any(|line| line.contains(said));
        assert!(is_said, "{old} to {new}: {lines:?}");
    }
}

#[test]
fn an_object_is_harmed_by_what_it_would_lose_or_violate_and_not_by_what_it_violates_already() {
    let old = one(&object(
        &json!({ "depth": { "type": "integer" }, "fish": { "type": "string" }, "old": { "type": "integer", "maximum": 1 } }),
    ));
    let new = one(&object(
        &json!({ "depth": { "type": "integer", "minimum": 2 }, "old": { "type": "integer", "maximum": 1 } }),
    ));
    let harm = |spec: Value| {
        let object = json!({ "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "a" }, "spec": spec });
        super::harm(&old, &new, &Node::from(&object), false)
    };
    assert_eq!(harm(json!({ "depth": 2 })), <[String; 0]>::default());
    let lost = harm(json!({ "depth": 1, "fish": "carp" }));
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(
        lost[0].starts_with("spec.depth: ") && lost[1].starts_with("spec.fish: "),
        "{lost:?}"
    );
    assert_eq!(
        harm(json!({ "depth": 3, "old": 9 })),
        <[String; 0]>::default()
    );
}

#[test]
fn a_version_in_which_objects_are_stored_stays_and_one_that_replaces_it_keeps_their_fields() {
    let fields = object(&json!({ "depth": { "type": "integer" } }));
    let other = object(&json!({ "metres": { "type": "integer" } }));
    let live = one(&fields);
    let replaced = shape(&json!([version("v2", true, &fields)]));
    let stored = ["v1".to_owned()];
    let DefinitionChange::Impossible(why) = compare(&live, &replaced, &stored) else {
        panic!("it is replaced")
    };
    assert!(
        why.contains("version v1") && why.contains("ork migrate storage ponds.water.example"),
        "{why}"
    );
    let both = |of_v2: &Value| {
        shape(&json!([
            version("v1", false, &fields),
            version("v2", true, of_v2)
        ]))
    };
    assert_eq!(
        compare(&live, &both(&fields), &stored),
        DefinitionChange::Widened
    );
    let DefinitionChange::Narrowed(lines) = compare(&live, &both(&other), &stored) else {
        panic!("a field is lost")
    };
    assert_eq!(lines, ["spec.depth is removed"]);
    let pond = json!({ "apiVersion": "water.example/v1", "kind": "Pond", "metadata": { "name": "a" }, "spec": { "depth": 1 } });
    let pond = Node::from(&pond);
    assert_eq!(harm(&live, &both(&other), &pond, false).len(), 1);
    assert_eq!(
        harm(&live, &both(&other), &pond, true),
        <[String; 0]>::default()
    );
    let mut cluster = live.clone();
    cluster.namespaced = false;
    assert!(matches!(
        compare(&live, &cluster, &stored),
        DefinitionChange::Impossible(_)
    ));
}
