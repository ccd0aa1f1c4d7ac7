//! Maps and lists of the custom resource that one template passes through as a whole.

use std::collections::BTreeSet;

use orkestra_engine::reconcile::reason::Reason;
use orkestra_language::api::{
    Lifecycle,
    shape::{ObjectShape, Shape},
};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, rendered},
};

const ALL: &str = "onReconcile:
  configMaps: [{ name: c, data: '{{ .spec.settings }}', labels: '{{ .spec.labels }}', annotations: '{{ .spec.labels }}' }]
  secrets: [{ name: s, data: '{{ .spec.settings }}' }]
  services: [{ name: d, selector: '{{ .spec.labels }}', ports: '{{ .spec.ports }}' }]
  deployments:
    - name: d
      image: pump
      labels: '{{ .spec.labels }}'
      env: '{{ .spec.settings }}'
      envFrom: '{{ .spec.from }}'
      nodeSelector: '{{ .spec.labels }}'
      tolerations: '{{ .spec.tolerations }}'
      affinity: '{{ .spec.affinity }}'
      resources: '{{ .spec.resources }}'
      imagePullSecrets: '{{ .spec.secrets }}'
      volumes: '{{ .spec.volumes }}'
      volumeMounts: '{{ .spec.mounts }}'
      containers: '{{ .spec.containers }}'
      securityContext: { capabilities: { drop: '{{ .spec.drop }}' } }
      probes: { liveness: '{{ .spec.probe }}' }
  custom:
    - apiVersion: v1
      kind: ConfigMap
      metadata: { name: own, labels: '{{ .spec.labels }}' }
      data: '{{ .spec.settings }}'";

fn spec() -> Value {
    json!({
        "settings": { "B": 1_000_000, "A": "x", "C": true },
        "labels": { "team": "reeds" },
        "ports": [{ "name": "web", "port": 80 }],
        "from": [{ "configMapRef": { "name": "shared" } }],
        "tolerations": [{ "key": "wet", "operator": "Exists" }],
        "affinity": { "nodeAffinity": {} },
        "resources": { "requests": { "cpu": "100m" } },
        "secrets": ["registry"],
        "volumes": [{ "name": "v", "emptyDir": {} }],
        "mounts": [{ "name": "v", "mountPath": "/v" }],
        "containers": [{ "name": "side", "image": "side:1" }],
        "drop": ["ALL"],
        "probe": { "tcpSocket": { "port": 80 } },
    })
}

// Over 60 lines: a line or two for each field.
#[test]
fn maps_and_lists_of_the_custom_resource_pass_through() {
    let cycle = World::new(&operator(ALL), pond(&spec(), &json!({}))).decide();
    assert_eq!(cycle.failures, []);
    let object = |kind: &str, name: &str| rendered(&cycle, &key(kind, name)).object.to_json();
    let texts = json!({ "A": "x", "B": "1000000", "C": "true" });
    for name in ["c", "own"] {
        let config = object("ConfigMap", name);
        assert_eq!(config["data"], texts, "{name}");
        assert_eq!(config["metadata"]["labels"]["team"], "reeds");
        // Ours stay.
        assert_eq!(
            config["metadata"]["labels"]["orkestra.orkspace.io/managed"],
            "true"
        );
    }
    let encoded = json!({ "A": "eA==", "B": "MTAwMDAwMA==", "C": "dHJ1ZQ==" });
    assert_eq!(object("Secret", "s")["data"], encoded);
    let service = object("Service", "d");
    assert_eq!(service["spec"]["selector"], json!({ "team": "reeds" }));
    assert_eq!(service["spec"]["ports"], spec()["ports"]);
    let deployment = object("Deployment.apps", "d");
    let template = &deployment["spec"]["template"];
    let labels = template["metadata"]["labels"].as_object().unwrap();
    assert_eq!(labels["team"], "reeds");
    assert_eq!(labels["app.kubernetes.io/managed-by"], "orkestra");
    let workload = "orkestra.orkspace.io/workload";
    assert_eq!(
        labels[workload],
        deployment["spec"]["selector"]["matchLabels"][workload]
    );
    let pod = &template["spec"];
    for (field, given) in [
        ("nodeSelector", "labels"),
        ("tolerations", "tolerations"),
        ("affinity", "affinity"),
        ("volumes", "volumes"),
    ] {
        assert_eq!(pod[field], spec()[given], "{field}");
    }
    assert_eq!(pod["imagePullSecrets"], json!([{ "name": "registry" }]));
    let containers = pod["containers"].as_array().unwrap();
    assert_eq!(
        (containers.len(), &containers[1]["name"]),
        (2, &json!("side"))
    );
    let variables = json!([
        { "name": "A", "value": "x" },
        { "name": "B", "value": "1000000" },
        { "name": "C", "value": "true" },
    ]);
    assert_eq!(containers[0]["env"], variables);
    for (field, given) in [
        ("envFrom", "from"),
        ("resources", "resources"),
        ("volumeMounts", "mounts"),
        ("livenessProbe", "probe"),
    ] {
        assert_eq!(containers[0][field], spec()[given], "{field}");
    }
    assert_eq!(
        containers[0]["securityContext"]["capabilities"]["drop"],
        json!(["ALL"])
    );
}

#[test]
fn missing_maps_and_lists_leave_their_fields_out() {
    let cycle = World::new(&operator(ALL), pond(&json!({}), &json!({}))).decide();
    assert_eq!(cycle.failures, []);
    let deployment = rendered(&cycle, &key("Deployment.apps", "d"))
        .object
        .to_json();
    let pod = &deployment["spec"]["template"]["spec"];
    let fields: BTreeSet<&String> = pod.as_object().unwrap().keys().collect();
    assert_eq!(fields, BTreeSet::from([&"containers".to_owned()]));
    let container = pod["containers"][0].as_object().unwrap();
    let fields: BTreeSet<&str> = container.keys().map(String::as_str).collect();
    assert_eq!(fields, BTreeSet::from(["image", "name", "securityContext"]));
}

#[test]
fn a_value_of_another_type_and_labels_of_ours_fail_the_resource() {
    for (spec, expected) in [
        (json!({ "settings": "A: x" }), "a map of text"),
        (
            json!({ "labels": { "orkestra.orkspace.io/managed": "no" } }),
            "a map of text without keys that start with `orkestra.orkspace.io/`",
        ),
    ] {
        let cycle = World::new(&operator(ALL), pond(&spec, &json!({}))).decide();
        let failure = cycle.failures.first().unwrap();
        assert_eq!(failure.reason, Reason::WrongType);
        assert!(
            failure
                .message
                .ends_with(&format!("must return {expected}")),
            "{failure:?}"
        );
    }
}

#[test]
fn a_patch_adds_a_port_of_another_protocol() {
    let declared = "onReconcile:
  deployments:
    - name: dns
      image: resolver:1
      port: 53
      patch: { spec: { template: { spec: { containers: [{ name: dns, ports: [{ name: udp, containerPort: 53, protocol: UDP }] }] } } } }
  services:
    - { name: dns, port: 53, patch: { spec: { ports: [{ name: tcp, port: 53, protocol: TCP }, { name: udp, port: 53, protocol: UDP }] } } }";
    let cycle = World::new(&operator(declared), pond(&json!({}), &json!({}))).decide();
    assert_eq!(cycle.failures, []);
    let object = |kind: &str| rendered(&cycle, &key(kind, "dns")).object.to_json();
    let container = &object("Deployment.apps")["spec"]["template"]["spec"]["containers"][0];
    let ports = json!([
        { "containerPort": 53 },
        { "name": "udp", "containerPort": 53, "protocol": "UDP" },
    ]);
    assert_eq!(container["ports"], ports);
    let ports = json!([
        { "name": "tcp", "port": 53, "protocol": "TCP", "targetPort": 53 },
        { "name": "udp", "port": 53, "protocol": "UDP" },
    ]);
    assert_eq!(object("Service")["spec"]["ports"], ports);
}

#[test]
fn a_network_policy_applies_to_the_workload_of_its_name() {
    let declared = "onReconcile:
  deployments: [{ name: web, image: pump }, { name: other, image: pump }]
  networkPolicies:
    - { name: web, profile: deny-all }
    - { name: all, profile: deny-all, podSelector: {} }
    - { name: other-policy, profile: deny-all, podSelector: '{{ .spec.selector }}' }";
    let plan = operator(declared);
    let selectors = |spec: &Value| {
        let cycle = World::new(&plan, pond(spec, &json!({}))).decide();
        assert_eq!(cycle.failures, []);
        let object = |kind: &str, name: &str| rendered(&cycle, &key(kind, name)).object.to_json();
        let policy = |name: &str| {
            let policy = object("NetworkPolicy.networking.k8s.io", name);
            policy["spec"]["podSelector"].clone()
        };
        let web = object("Deployment.apps", "web")["spec"]["selector"].clone();
        let other = object("Deployment.apps", "other")["spec"]["selector"].clone();
        assert_eq!((policy("web"), policy("all")), (web, json!({})));
        (policy("other-policy"), other)
    };
    let (selected, workload) = selectors(&json!({}));
    assert_eq!(selected, workload);
    let (selected, _) = selectors(&json!({ "selector": { "app": "x" } }));
    assert_eq!(selected, json!({ "matchLabels": { "app": "x" } }));
}

#[test]
fn a_network_policy_without_a_workload_never_selects_all_pods_by_a_missing_selector() {
    let declared = "onReconcile:
  networkPolicies: [{ name: x, profile: deny-all, podSelector: '{{ .spec.selector }}' }]";
    let plan = operator(declared);
    let cycle = World::new(&plan, pond(&json!({}), &json!({}))).decide();
    let failure = cycle.failures.first().unwrap();
    assert_eq!(failure.reason, Reason::WrongType);
    let message = "`{{ .spec.selector }}` must return a map";
    assert!(failure.message.contains(message), "{failure:?}");
    for (selector, expected) in [
        (
            json!({ "app": "x" }),
            json!({ "matchLabels": { "app": "x" } }),
        ),
        (json!({}), json!({})),
    ] {
        let spec = json!({ "selector": selector });
        let cycle = World::new(&plan, pond(&spec, &json!({}))).decide();
        assert_eq!(cycle.failures, []);
        let policy = rendered(&cycle, &key("NetworkPolicy.networking.k8s.io", "x"));
        assert_eq!(policy.object.to_json()["spec"]["podSelector"], expected);
    }
}

#[test]
fn names_and_labels_that_are_too_long_fail_before_they_are_written() {
    let long = "a".repeat(64);
    for (declared, message) in [
        (
            "onReconcile: { configMaps: [{ name: c, labels: { a: '{{ .spec.long }}' } }] }",
            "a label value has at most 63",
        ),
        (
            "onReconcile: { cronJobs: [{ name: '{{ .spec.long }}', image: pump, schedule: '* * * * *' }] }",
            "at most 52 are allowed",
        ),
    ] {
        let spec = json!({ "long": long });
        let cycle = World::new(&operator(declared), pond(&spec, &json!({}))).decide();
        let failure = cycle.failures.first().unwrap();
        assert_eq!(failure.reason, Reason::InvalidName);
        assert!(failure.message.contains(message), "{failure:?}");
    }
}

#[test]
fn two_items_with_the_same_keys_fail_the_resource() {
    let spec = json!({ "ports": [{ "name": "a", "port": 80 }, { "name": "b", "port": 80 }] });
    let cycle = World::new(&operator(ALL), pond(&spec, &json!({}))).decide();
    let failure = cycle.failures.first().unwrap();
    let message = "`spec.ports[1]` has the same `port` and `protocol` as an item before it";
    assert_eq!(failure.message, message);
}

/// Returns the object of the list `list` with one field, and those that it needs.
fn entry(list: &str, object: &ObjectShape, field: &str, value: &Value) -> Value {
    let mut entry = json!({ "name": "x" });
    for (name, _) in object.fields.iter().filter(|(_, field)| field.required) {
        entry[name] = match name.as_str() {
            "rules" => json!([{ "resources": ["pods"], "verbs": ["get"] }]),
            "roleRef" => json!({ "name": "r" }),
            "subjects" => json!([{ "name": "s" }]),
            "schedule" => json!("* * * * *"),
            "storage" | "capacity" => json!("1Gi"),
            _ => json!("80"),
        };
    }
    let more = match list {
        "networkPolicies" => json!({ "podSelector": {}, "ingress": [] }),
        "persistentVolumes" => json!({ "hostPath": "/x" }),
        "pdb" => json!({ "selector": { "a": "b" }, "minAvailable": 1 }),
        "services" => json!({ "selector": { "a": "b" }, "port": 80 }),
        "hpa" => json!({ "scaleTargetRef": { "name": "x" }, "maxReplicas": 3 }),
        "resourceQuotas" => json!({ "hard": { "pods": "1" } }),
        "limitRanges" => json!({ "limits": [{ "type": "Pod", "max": { "cpu": "1" } }] }),
        _ => json!({}),
    };
    for (name, value) in more.as_object().unwrap() {
        entry[name] = value.clone();
    }
    entry[field] = value.clone();
    if field == "ports" {
        entry.as_object_mut().unwrap().remove("port");
    }
    entry
}

/// Returns a value for a field of this shape, in the format of Kubernetes.
fn sample(name: &str, shape: &Shape) -> Value {
    match shape.written() {
        Shape::List(_) => json!([]),
        _ if name == "tls" => json!([]),
        _ => json!({}),
    }
}

#[test]
fn every_field_with_parts_of_every_child_takes_a_template() {
    let Shape::Object(block) = Shape::of::<Lifecycle>() else {
        panic!("a block is a map");
    };
    let mut tried = 0;
    for list in Lifecycle::LISTS {
        let Shape::List(item) = &block.fields[list.list].shape else {
            panic!("{} is a list", list.list);
        };
        let Shape::Object(object) = &**item else {
            panic!("an entry is a map");
        };
        for (name, field) in &object.fields {
            if !matches!(field.shape, Shape::OrTemplate(_)) {
                continue;
            }
            tried += 1;
            let template = format!("{{{{ .spec.given.{name} }}}}");
            let entry = entry(list.list, object, name, &json!(template));
            let declared = format!("onReconcile: {}", json!({ (list.list): [entry] }));
            // The plan reads the field: its value reaches the object.
            let plan = operator(&declared);
            let reads = format!("{:?}", plan.reads);
            assert!(reads.contains(name), "{}.{name}: {reads}", list.list);
            let given = json!({ "given": { (name): sample(name, &field.shape) } });
            let cycle = World::new(&plan, pond(&given, &json!({}))).decide();
            assert_eq!(cycle.failures, [], "{}.{name}", list.list);
        }
    }
    assert!(tried > 100, "{tried}");
}
