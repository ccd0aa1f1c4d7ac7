//! Arbitrary objects: scaffolding results in a draft or an error, and never panics.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Keys that the conversions to a draft read.
const KEYS: [&str; 34] = [
    "allOf",
    "args",
    "backend",
    "containers",
    "data",
    "default",
    "env",
    "enum",
    "externalRef",
    "hosts",
    "http",
    "id",
    "image",
    "includeWhen",
    "items",
    "jobTemplate",
    "labels",
    "matchLabels",
    "metadata",
    "metrics",
    "name",
    "paths",
    "port",
    "ports",
    "properties",
    "replicas",
    "required",
    "resources",
    "rules",
    "schema",
    "selector",
    "spec",
    "template",
    "tls",
];
const KINDS: [(&str, &str); 14] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "CronJob"),
    ("batch/v1", "Job"),
    ("v1", "Service"),
    ("v1", "Secret"),
    ("v1", "ConfigMap"),
    ("v1", "PersistentVolumeClaim"),
    ("networking.k8s.io/v1", "Ingress"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("policy/v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("kro.run/v1alpha1", "ResourceGraphDefinition"),
];

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z{}$. -]{0,12}".prop_map(Value::from),
        Just(json!("${schema.spec.name}")),
        Just(json!("{{ .Values.image }}")),
        Just(json!("string | default=3 enum=a,b")),
    ];
    leaf.prop_recursive(7, 60, 5, |inner| {
        let key = prop::sample::select(&KEYS[..]).prop_map(str::to_owned);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    let kind = prop::sample::select(&KINDS[..]);
    (kind, "[a-zA-Z.:{-]{1,8}", value(), value()).prop_map(|((version, kind), name, spec, more)| {
        json!({
            "apiVersion": version, "kind": kind, "spec": spec, "data": more, "stringData": more, "rules": more,
            "subjects": more, "roleRef": spec, "metadata": { "name": name, "labels": more, "annotations": spec },
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn whatever_objects_hold_there_is_a_draft_or_an_error(objects in prop::collection::vec(object(), 1..4)) {
        let text: Vec<String> = objects.iter().map(Value::to_string).collect();
        let file = |name: &str, text: &str| Input { name: name.to_owned(), text: text.to_owned() };
        let input = [file("a.yaml", &text.join("\n---\n"))];
        let chart = [
            file("Chart.yaml", "name: a"),
            file("values.yaml", &text[0]),
            file("templates/a.yaml", &text.join("\n---\n")),
        ];
        let drafts = [
            from_manifests(&input, None, None, "example.org"),
            from_crd(&input, None, None),
            from_kro(&input, None),
            from_helm(&chart, None, None, "example.org"),
        ];
        for draft in drafts.into_iter().flatten() {
            for text in [draft.katalog_text(), draft.crd_text(), draft.sample_text()] {
                prop_assert!(text.is_ok());
            }
        }
    }
}
