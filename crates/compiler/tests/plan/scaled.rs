//! Permissions to read autoscalers.

use super::plan_of;

/// Returns the autoscaler rules of `children`, an `onReconcile` or `onCreate` in YAML: whether there are rules for all
/// namespaces, and the namespaces with rules of their own.
fn derived(children: &str) -> (bool, Vec<String>) {
    let plan = plan_of(&format!(
        "crds: {{ pond: {{ apiTypes: {{ group: a.example, version: v1, kind: Pond, plural: ponds }}, allowedNamespaces: \
         [water], operatorBox: {{ {children} }} }} }}"
    ));
    let permissions = orkestra_plan::rbac::permissions(&plan);
    let of_autoscalers = |rules: &[orkestra_plan::rbac::RbacRule]| {
        let rules = serde_json::to_string(rules).unwrap();
        rules.contains("horizontalpodautoscalers")
    };
    let places = permissions.namespaces.iter();
    let places = places.filter(|(_, rules)| of_autoscalers(rules));
    let places = places.map(|(place, _)| place.to_string()).collect();
    (of_autoscalers(&permissions.cluster), places)
}

/// Returns a child of `custom` with these fields.
fn custom(api_version: &str, kind: &str, fields: &str) -> String {
    format!(
        "onReconcile: {{ custom: [{{ apiVersion: {api_version}, kind: {kind}, metadata: {{ name: a, namespace: far }}, \
         {fields} }}] }}"
    )
}

#[test]
fn autoscalers_are_looked_for_where_a_child_that_may_be_scaled_sets_replicas() {
    for (children, place) in [
        (
            custom("water.example/v1", "Pump", "spec: { replicas: 2 }"),
            "far",
        ),
        (
            custom(
                "water.example/v1",
                "Pump",
                "spec: { replicas: \"{{ .spec.pumps }}\" }",
            ),
            "far",
        ),
        (
            custom("water.example/v1", "Pump", "spec: \"{{ .spec.pump }}\""),
            "far",
        ),
        (
            custom(
                "apps/v1",
                "ReplicaSet",
                "spec: { replicas: 2, selector: { matchLabels: { app: a } } }",
            ),
            "far",
        ),
        (
            custom("v1", "ReplicationController", "spec: { replicas: 2 }"),
            "far",
        ),
        (
            "onReconcile: { deployments: [{ name: a, image: b, replicas: 2 }] }".to_owned(),
            "water",
        ),
        (
            "onReconcile: { deployments: [{ name: a, image: b, autoscale: { max: 3, scaleUp: { conditions: \
             { when: [{ field: spec.load, greaterThan: 80 }] } } } }] }"
                .to_owned(),
            "water",
        ),
    ] {
        let expected = (false, vec![place.to_owned()]);
        assert_eq!(derived(&children), expected, "{children}");
    }
}

#[test]
fn no_autoscaler_is_looked_for_of_a_child_that_none_can_scale() {
    for children in [
        custom("water.example/v1", "Pump", "spec: { depth: 2 }"),
        custom("v1", "Service", "spec: \"{{ .spec.service }}\""),
        custom("apps/v1", "DaemonSet", "spec: \"{{ .spec.daemon }}\""),
        "onCreate: { custom: [{ apiVersion: water.example/v1, kind: Pump, metadata: { name: a, namespace: far }, spec: \
         { replicas: 2 } }] }"
            .to_owned(),
    ] {
        assert_eq!(derived(&children), (false, Vec::new()), "{children}");
    }
}
