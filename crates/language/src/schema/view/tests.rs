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

fn report(path: &str) -> String {
    let node: Node = serde_json::from_str(CRD).unwrap();
    let built_in = BuiltIn::new();
    let schema = Schema::of_objects(&node, Some(&built_in));
    match schema.at_path(&Path::parse(path).unwrap()) {
        NestedSchema::Schema(schema) => schema.describe(),
        NestedSchema::Anything => "?".to_owned(),
        NestedSchema::Nowhere => "-".to_owned(),
    }
}

#[test]
fn paths_lead_where_the_api_server_keeps_values() {
    for (path, reported) in [
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
        assert_eq!(report(path), reported, "{path}");
    }
}

#[test]
fn built_in_kinds_are_walked_through_their_references() {
    let built_in = BuiltIn::new();
    let deployment = built_in.kind("apps", "v1", "Deployment").unwrap();
    let reported = |path: &str| match deployment.at_path(&Path::parse(path).unwrap()) {
        NestedSchema::Schema(schema) => schema.describe(),
        NestedSchema::Anything => "?".to_owned(),
        NestedSchema::Nowhere => "-".to_owned(),
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
        assert_eq!(reported(path), expected, "{path}");
    }
    assert_eq!(
        deployment.fields().collect::<Vec<_>>(),
        ["apiVersion", "kind", "metadata", "spec", "status"]
    );
    let NestedSchema::Schema(spec) = deployment.field("spec") else {
        panic!("no spec");
    };
    assert_eq!(
        spec.required().collect::<Vec<_>>(),
        ["selector", "template"]
    );
}

#[test]
fn lists_that_are_owned_whole_are_found_through_references_and_definitions_inside_of_themselves() {
    let built_in = BuiltIn::new();
    let whole = |group: &str, kind: &str| -> Vec<String> {
        let schema = built_in.kind(group, "v1", kind).unwrap();
        let lists = schema.whole_lists().into_iter();
        lists.map(|path| path.join(".")).collect()
    };
    let deployment = whole("apps", "Deployment");
    for (list, is_whole) in [
        ("spec.template.spec.containers.args", true),
        ("spec.template.spec.tolerations", true),
        ("spec.template.spec.containers", false),
        ("spec.template.spec.imagePullSecrets", false),
        ("metadata.finalizers", false),
        ("spec.selector.matchLabels", false),
    ] {
        assert_eq!(deployment.iter().any(|at| at == list), is_whole, "{list}");
    }
    assert!(whole("networking.k8s.io", "NetworkPolicy").contains(&"spec.egress".to_owned()));
    assert!(whole("rbac.authorization.k8s.io", "Role").contains(&"rules".to_owned()));
    let schemas = "apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps";
    let schemas = Schema::new(built_in.definition(schemas).unwrap(), &built_in).whole_lists();
    assert!(schemas.contains(&vec!["required"]), "{schemas:?}");
    let declared = r#"{"type": "object", "properties": {
        "plain": {"type": "array", "items": {"type": "string"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"], "items": {
            "type": "object", "properties": {"inner": {"type": "array", "x-kubernetes-list-type": "atomic"}}}},
        "words": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
    }}"#;
    let declared: Node = serde_json::from_str(declared).unwrap();
    let found = Schema::of_part(&declared).whole_lists();
    assert_eq!(found, [vec!["keyed", "inner"], vec!["plain"]]);
}
