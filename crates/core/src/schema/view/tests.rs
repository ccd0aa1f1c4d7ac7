use super::*;

const CRD: &str = r#"{"type": "object", "properties": {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"},
    "spec": {"type": "object", "required": ["size"], "properties": {
        "size": {"type": "integer"}, "mode": {"type": "string", "enum": ["dev", "prod"]},
        "port": {"x-kubernetes-int-or-string": true}, "empty": {"type": "object"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "steps": {"type": "array", "items": {"type": "object", "properties": {"took": {"type": "number"}}}},
        "raw": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "known": {"type": "object", "properties": {"a": {"type": "string"}}}, "silent": {"type": "object"}}},
        "any": {"type": "object", "additionalProperties": true}, "untyped": {},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true}
    }}}}"#;

fn tell(path: &str) -> String {
    let node: Node = serde_json::from_str(CRD).unwrap();
    let built_in = BuiltIn::new();
    let schema = Schema::of_objects(&node, Some(&built_in));
    match schema.at_path(&Path::parse(path).unwrap()) {
        Below::Schema(schema) => schema.describe(),
        Below::Anything => "?".to_owned(),
        Below::Nowhere => "-".to_owned(),
    }
}

#[test]
fn paths_lead_where_the_api_server_keeps_values() {
    for (path, told) in [
        ("", "object"),
        ("spec.size", "integer"),
        ("spec.mode", "one of dev, prod"),
        ("spec.port", "integer or text"),
        ("spec.labels", "map of text"),
        ("spec.labels[\"a.b/c\"]", "text"),
        ("spec.steps", "list of object"),
        ("spec.steps[3].took", "number"),
        ("spec.steps.0.took", "number"),
        ("spec.raw.known.a", "text"),
        ("spec.pod.metadata.name", "text"),
        ("metadata.name", "text"),
        ("metadata.labels.x", "text"),
        ("metadata.ownerReferences[0].controller", "boolean"),
        ("kind", "text"),
        ("spec.raw.x.y", "?"),
        ("spec.raw.silent.y", "?"),
        ("spec.any.x.y", "?"),
        ("spec.untyped.x", "?"),
        ("spec.pod.spec", "?"),
        ("spec.sise", "-"),
        ("spec.empty.x", "-"),
        ("spec.size.x", "-"),
        ("spec.steps.took", "-"),
        ("spec.labels.x.y", "-"),
        ("spec.raw.known.b", "-"),
        ("metadata.nam", "-"),
        ("status", "-"),
    ] {
        assert_eq!(tell(path), told, "{path}");
    }
}

#[test]
fn built_in_kinds_are_walked_through_their_references() {
    let built_in = BuiltIn::new();
    let deployment = built_in.kind("apps", "v1", "Deployment").unwrap();
    let told = |path: &str| match deployment.at_path(&Path::parse(path).unwrap()) {
        Below::Schema(schema) => schema.describe(),
        Below::Anything => "?".to_owned(),
        Below::Nowhere => "-".to_owned(),
    };
    for (path, expected) in [
        ("spec.replicas", "integer"),
        ("spec.template.spec.containers[0].image", "text"),
        (
            "spec.template.spec.containers[0].imagePullPolicy",
            "one of Always, IfNotPresent, Never",
        ),
        ("spec.strategy.rollingUpdate.maxSurge", "integer or text"),
        (
            "spec.template.spec.containers[0].resources.limits.cpu",
            "number or text",
        ),
        ("spec.replcas", "-"),
        ("metadata.managedFields[0].fieldsV1.x", "?"),
    ] {
        assert_eq!(told(path), expected, "{path}");
    }
    assert_eq!(
        deployment.fields().collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata", "spec", "status"]
    );
    let Below::Schema(spec) = deployment.field("spec") else {
        panic!("no spec");
    };
    assert_eq!(
        spec.required().collect::<Vec<_>>(),
        ["selector", "template"]
    );
}
