//! The objects of a first pass: complete, with their labels and annotations.

use orkestra_engine::reconcile::{record::child_mark, step::Cycle};
use serde_json::{Value, json};

use super::{
    operator::{NAME, NAMESPACE, UID, cluster_operator, cluster_pond, of_document, operator, pond},
    world::{World, key, key_in, rendered, words},
};

const EVERYTHING: &str = include_str!("../inputs/pass/everything.yaml");

/// Returns a Pond with all fields that the fixture reads.
pub(crate) fn whole_pond() -> Value {
    let spec = json!({
        "role": "keeper", "seed": "s33d", "image": "pump:3", "pull": "second", "replicas": 3, "port": 5353,
        "depth": 7, "args": ["--slow", "--cold"], "tier": "back", "memory": "64Mi", "patience": "9",
        "readOnly": false, "group": 2000, "path": "/data", "disk": "ssd", "fish": "carp & koi",
    });
    pond(&spec, &json!({}))
}

pub(crate) fn everything() -> World {
    World::new(
        &of_document(EVERYTHING, &orkestra_plan::definitions::Schemas::default()),
        whole_pond(),
    )
}

fn object(cycle: &Cycle, kind: &str, name: &str) -> Value {
    rendered(cycle, &key(kind, name)).object.to_json()
}

#[test]
fn children_come_in_the_order_in_which_others_need_them() {
    let cycle = everything().decide();
    assert_eq!(cycle.failures, []);
    assert_eq!(
        words(&cycle),
        [
            "apply ServiceAccount east/pond-sa",
            "apply ClusterRole.rbac.authorization.k8s.io pond:pond",
            "create Secret east/pond-once",
            "apply Secret east/pond-secret",
            "apply Secret east/pond-text",
            "apply ConfigMap east/pond-config",
            "apply ConfigMap west/pond-far",
            "apply Service east/pond",
            "apply Service east/pond-headless",
            "apply Service east/pond-named",
            "apply Deployment.apps east/pond",
            "create Job.batch east/pond-fill",
            "apply Fish.water.example east/pond",
        ]
    );
}

#[test]
fn a_deployment_is_rendered_with_every_field_of_its_type() {
    let found = object(&everything().decide(), "Deployment.apps", NAME);
    let label = found["spec"]["selector"]["matchLabels"]["orkestra.orkspace.io/workload"].clone();
    assert!(
        label
            .as_str()
            .is_some_and(|text| (1..=63).contains(&text.len()))
    );
    let expected = spec_of_the_deployment(&label);
    assert_eq!(found["spec"], expected, "{:#}", found["spec"]);
    assert_eq!(
        (&found["apiVersion"], &found["kind"]),
        (&json!("apps/v1"), &json!("Deployment"))
    );
}

/// Returns the expected spec of the Deployment. Its pods have this label of their workload.
fn spec_of_the_deployment(label: &Value) -> Value {
    json!({
        "replicas": 3,
        "selector": { "matchLabels": { "orkestra.orkspace.io/workload": label } },
        "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": "25%", "maxUnavailable": 0 } },
        "template": {
            "metadata": { "labels": {
                "app.kubernetes.io/instance": "pond", "app.kubernetes.io/managed-by": "orkestra",
                "app.kubernetes.io/name": "pond", "orkestra.orkspace.io/workload": label, "tier": "back",
            } },
            "spec": {
                "imagePullSecrets": [{ "name": "registry" }, { "name": "second" }],
                "nodeSelector": { "disk": "ssd" },
                "serviceAccountName": "pond-sa",
                "securityContext": { "runAsNonRoot": true, "runAsUser": 1000, "runAsGroup": 1001, "fsGroup": 2000 },
                "volumes": [
                    { "name": "data", "persistentVolumeClaim": { "claimName": "pond-data" } },
                    { "name": "scratch", "emptyDir": {} },
                ],
                "containers": [{
                    "name": "pond",
                    "image": "pump:3",
                    "command": ["/bin/pump", "--depth=7"],
                    "args": ["--slow", "--cold"],
                    "workingDir": "/srv",
                    "ports": [{ "containerPort": 5353, "protocol": "UDP" }],
                    "env": [
                        { "name": "DEPTH", "value": "7" },
                        { "name": "FISH", "valueFrom": { "configMapKeyRef": { "name": "pond-config", "key": "fish" } } },
                        { "name": "KEY", "valueFrom":
                            { "secretKeyRef": { "name": "pond-secret", "key": "key", "optional": true } } },
                        { "name": "LITERAL", "value": "0644" },
                    ],
                    "envFrom": [
                        { "configMapRef": { "name": "pond-config" } },
                        { "secretRef": { "name": "pond-secret", "optional": true } },
                    ],
                    "resources": { "requests": { "cpu": "100m", "memory": "64Mi" }, "limits": {} },
                    "startupProbe": { "tcpSocket": { "port": 5353 }, "failureThreshold": 9 },
                    "livenessProbe": { "httpGet": { "path": "/alive", "port": 9090 }, "periodSeconds": 7 },
                    "readinessProbe": { "httpGet": { "path": "/", "port": 5353 }, "initialDelaySeconds": 1,
                        "successThreshold": 1, "timeoutSeconds": 2 },
                    "securityContext": {
                        "runAsNonRoot": true, "readOnlyRootFilesystem": false, "allowPrivilegeEscalation": false,
                        "capabilities": { "drop": ["ALL"], "add": ["NET_BIND_SERVICE"] },
                    },
                    "volumeMounts": [
                        { "name": "data", "mountPath": "/data", "readOnly": true },
                        { "name": "scratch", "mountPath": "/tmp" },
                    ],
                }],
            },
        },
    })
}

#[test]
fn a_service_selects_the_pods_of_its_workload_and_of_no_other() {
    let cycle = everything().decide();
    let deployment = object(&cycle, "Deployment.apps", NAME);
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    let workload =
        json!({ "orkestra.orkspace.io/workload": labels["orkestra.orkspace.io/workload"] });
    let spec = |name: &str| object(&cycle, "Service", name)["spec"].clone();
    assert_eq!(
        spec("pond"),
        json!({ "type": "LoadBalancer", "selector": workload,
            "ports": [{ "port": 80, "targetPort": 5353, "protocol": "UDP" }] })
    );
    assert_eq!(
        spec("pond-headless"),
        json!({ "clusterIP": "None", "selector": workload, "ports": [{ "port": 5353, "targetPort": 5353 }] })
    );
    assert_eq!(
        spec("pond-named"),
        json!({ "selector": { "app": "back" }, "ports": [{ "port": 53, "targetPort": "dns" }] })
    );
}

#[test]
fn the_same_workload_of_another_custom_resource_has_other_pods() {
    let workload = |name: &str| {
        let mut world = everything();
        world.cr["metadata"]["name"] = json!(name);
        let found = rendered(&world.decide(), &key("Deployment.apps", name))
            .object
            .to_json();
        found["spec"]["selector"]["matchLabels"]["orkestra.orkspace.io/workload"].clone()
    };
    assert_eq!(workload("pond"), workload("pond"));
    assert_ne!(workload("pond"), workload("lake"));
}

#[test]
fn every_child_carries_its_marks() {
    let cycle = everything().decide();
    for intent in words(&cycle) {
        let (kind, object) = intent.split_once(' ').unwrap().1.split_once(' ').unwrap();
        let (namespace, name) = object
            .split_once('/')
            .map_or((None, object), |(a, b)| (Some(a), b));
        let key = key_in(namespace, kind, name);
        let found = rendered(&cycle, &key);
        let metadata = &found.object.to_json()["metadata"];
        assert_eq!(metadata["name"], *name);
        assert_eq!(metadata.get("namespace").and_then(Value::as_str), namespace);
        for (label, value) in [
            ("managed", "true"),
            ("owner-uid", UID),
            ("katalog", "default.waters"),
        ] {
            assert_eq!(
                metadata["labels"][format!("orkestra.orkspace.io/{label}")],
                *value,
                "{key}"
            );
        }
        let annotation =
            |name: &str| &metadata["annotations"][format!("orkestra.orkspace.io/{name}")];
        assert_eq!(*annotation("child"), child_mark(&key.kind, name));
        assert_eq!(*annotation("applied"), found.hash);
    }
}

#[test]
fn ownership_labels_stay_off_the_pods() {
    let found = object(&everything().decide(), "Deployment.apps", NAME);
    let labels = found["spec"]["template"]["metadata"]["labels"]
        .as_object()
        .unwrap();
    assert_eq!(
        labels.keys().collect::<Vec<_>>(),
        [
            "app.kubernetes.io/instance",
            "app.kubernetes.io/managed-by",
            "app.kubernetes.io/name",
            "orkestra.orkspace.io/workload",
            "tier"
        ]
    );
}

#[test]
fn the_custom_resource_controls_what_lies_in_its_namespace_and_nothing_else() {
    let cycle = everything().decide();
    let owners =
        |key| rendered(&cycle, &key).object.to_json()["metadata"]["ownerReferences"].clone();
    assert_eq!(
        owners(key("Deployment.apps", NAME)),
        json!([{ "apiVersion": "water.example/v1", "kind": "Pond", "name": NAME, "uid": UID,
            "controller": true, "blockOwnerDeletion": true }])
    );
    assert_eq!(
        owners(key_in(Some("west"), "ConfigMap", "pond-far")),
        Value::Null
    );
    assert_eq!(
        owners(key_in(
            None,
            "ClusterRole.rbac.authorization.k8s.io",
            "pond:pond"
        )),
        Value::Null
    );
}

#[test]
fn a_cluster_scoped_custom_resource_controls_children_everywhere() {
    let plan = cluster_operator(
        "onReconcile: { configMaps: [{ name: a, namespace: west }], custom: [{ apiVersion: v1, kind: Namespace, metadata: { name: b } }] }",
    );
    let cycle = World::new(&plan, cluster_pond(&json!({}))).decide();
    assert_eq!(cycle.failures, []);
    for key in [
        key_in(Some("west"), "ConfigMap", "a"),
        key_in(None, "Namespace", "b"),
    ] {
        let metadata = &rendered(&cycle, &key).object.to_json()["metadata"];
        assert_eq!(metadata["ownerReferences"][0]["uid"], UID);
    }
}

#[test]
fn a_child_without_a_namespace_is_in_the_custom_resources_own() {
    let plan = operator(
        "onReconcile: { configMaps: [{ name: a }, { name: b, namespace: '{{ .spec.where }}' }] }",
    );
    let namespaces = |spec: &Value| {
        let cycle = World::new(&plan, pond(spec, &json!({}))).decide();
        assert_eq!(cycle.failures, []);
        words(&cycle)
    };
    let own = ["apply ConfigMap east/a", "apply ConfigMap east/b"];
    assert_eq!(namespaces(&json!({})), own);
    assert_eq!(namespaces(&json!({ "where": NAMESPACE })), own);
    assert_eq!(
        namespaces(&json!({ "where": "west" })),
        ["apply ConfigMap east/a", "apply ConfigMap west/b"]
    );
}

#[test]
fn a_secret_is_data_and_never_string_data() {
    let cycle = everything().decide();
    let secret = |name: &str| object(&cycle, "Secret", name);
    assert_eq!(
        secret("pond-secret")["data"],
        json!({ "key": "Y2FycCAmIGtvaQ==" })
    );
    assert_eq!(secret("pond-secret")["type"], "water.example/key");
    assert_eq!(secret("pond-once")["type"], "Opaque");
    assert_eq!(
        secret("pond-text")["data"],
        json!({ "text": "Y2FycCAmIGtvaQ==" })
    );
    assert_eq!(secret("pond-text").get("stringData"), None);
}

#[test]
fn an_object_of_any_kind_keeps_native_types_and_leaves_out_what_is_missing() {
    let found = object(&everything().decide(), "Fish.water.example", NAME);
    let spec = &found["spec"];
    assert_eq!(spec["count"], json!(3));
    assert_eq!(spec["list"], json!([1, 7, { "deep": 7 }]));
    assert_eq!(spec.get("nothing"), None);
    assert_eq!(spec["empty"], json!({}));
}
