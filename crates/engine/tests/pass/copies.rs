//! Copies of Secrets, `ConfigMap`s and others: they follow their source, wait for it, and are created in the declared namespaces.

use std::sync::Arc;

use orkestra_engine::reconcile::{
    reason::Reason,
    sources::{Answer, Read},
};
use orkestra_object::value::Node;
use orkestra_plan::ChildKey;
use serde_json::{Value, json};

use super::{
    operator::{cluster_operator, cluster_pond, operator, pond},
    world::{World, key, key_in, words},
};

const LOGIN: &str = "onReconcile:
  secrets:
    - name: login
      fromSecret: '{{ .spec.login }}'
      data: { user: pond }";

fn world(declared: &str, spec: &Value) -> World {
    World::new(&operator(declared), pond(spec, &json!({})))
}

/// Adds an object that a pass finds under this key.
fn there_is(world: &mut World, key: ChildKey, object: &Value) {
    let found = Answer::Ready(Arc::new(Node::from(object)));
    world.outside.insert(Read::Object(key), found);
}

fn registry(password: &str) -> Value {
    json!({ "kind": "Secret", "type": "kubernetes.io/basic-auth", "data": { "user": "cm9vdA==", "password": password } })
}

fn reasons(world: &World) -> Vec<Reason> {
    let failures = world.decide().failures;
    failures.iter().map(|failure| failure.reason).collect()
}

#[test]
fn a_copy_waits_for_its_source_and_then_follows_it() {
    let mut world = world(LOGIN, &json!({ "login": "registry" }));
    let first = world.pass();
    assert_eq!(first.written, []);
    assert_eq!(first.cycle.failures[0].reason, Reason::SourceMissing);
    assert!(
        first.cycle.failures[0]
            .message
            .contains("Secret east/registry")
    );
    there_is(&mut world, key("Secret", "registry"), &registry("b25l"));
    assert_eq!(world.pass().written.len(), 1);
    let copy = world.objects[&key("Secret", "login")].object();
    assert_eq!(copy["type"], "kubernetes.io/basic-auth");
    // The entry's own data takes precedence.
    assert_eq!(
        copy["data"],
        json!({ "user": "cG9uZA==", "password": "b25l" })
    );
    assert_eq!(world.pass().written, []);
    there_is(&mut world, key("Secret", "registry"), &registry("dHdv"));
    assert_eq!(world.pass().written.len(), 1);
    // Without its source the copy stays unchanged.
    world.outside.clear();
    let gone = world.pass();
    assert_eq!(
        (gone.written, words(&gone.cycle)),
        (vec![], vec!["keep Secret east/login".to_owned()])
    );
    assert_eq!(gone.cycle.failures[0].reason, Reason::SourceMissing);
}

#[test]
fn a_copy_that_is_made_in_on_create_follows_its_source_too() {
    let declared = LOGIN.replace("onReconcile", "onCreate");
    let mut world = world(&declared, &json!({ "login": "registry" }));
    for password in ["b25l", "dHdv"] {
        there_is(&mut world, key("Secret", "registry"), &registry(password));
        assert_eq!(world.pass().written.len(), 1);
    }
    let once = declared.replace("data:", "reconcile: false\n      data:");
    let mut world = self::world(&once, &json!({ "login": "registry" }));
    there_is(&mut world, key("Secret", "registry"), &registry("b25l"));
    assert_eq!(world.pass().written.len(), 1);
    there_is(&mut world, key("Secret", "registry"), &registry("dHdv"));
    assert_eq!(world.pass().written, []);
}

#[test]
fn what_cannot_be_read_is_no_reason_to_change_a_copy() {
    let mut world = world(LOGIN, &json!({ "login": "registry" }));
    let read = Read::Object(key("Secret", "registry"));
    world
        .outside
        .insert(read, Answer::Unavailable("no right".into()));
    assert_eq!(reasons(&world), [Reason::Unavailable]);
}

#[test]
fn a_custom_resource_chooses_only_what_is_allowed() {
    let declared = "onReconcile:
  secrets:
    - name: login
      fromSecret: '{{ .spec.login }}'
      fromNamespace: '{{ .spec.from }}'
      allowedSources: [infra/*-login]";
    let with = |from: &str, login: &str| world(declared, &json!({ "from": from, "login": login }));
    for (from, login) in [("infra", "root"), ("kube-system", "db-login")] {
        let world = with(from, login);
        assert_eq!(reasons(&world), [Reason::SourceRefused], "{from}/{login}");
    }
    let mut allowed = with("infra", "db-login");
    let source = key_in(Some("infra"), "Secret", "db-login");
    there_is(&mut allowed, source, &registry("b25l"));
    assert_eq!(reasons(&allowed), []);
    // A source in the custom resource's own namespace is always allowed.
    let mut own = with("east", "anything");
    there_is(&mut own, key("Secret", "anything"), &registry("b25l"));
    assert_eq!(reasons(&own), []);
}

#[test]
fn a_copy_of_itself_and_one_of_nothing_are_refused() {
    for name in ["login", "", "No Name"] {
        let world = world(LOGIN, &json!({ "login": name }));
        assert_eq!(reasons(&world), [Reason::InvalidName], "{name}");
    }
}

#[test]
fn who_lives_in_no_namespace_says_where_the_source_is() {
    let declared = LOGIN.replace("name: login", "name: login\n      namespace: west");
    let world = World::new(
        &cluster_operator(&declared),
        cluster_pond(&json!({ "login": "x" })),
    );
    assert_eq!(reasons(&world), [Reason::InvalidName]);
}

#[test]
fn there_is_one_copy_in_each_namespace_and_none_elsewhere() {
    let declared = "onReconcile:
  configMaps:
    - name: shared
      fromConfigMap: settings
      fromNamespace: infra
      toNamespaces: [west, '{{ .spec.other }}', '{{ .spec.third }}']";
    let mut world = world(declared, &json!({ "other": "north", "third": "west" }));
    let source = key_in(Some("infra"), "ConfigMap", "settings");
    there_is(&mut world, source, &json!({ "data": { "depth": "3" } }));
    let first = world.pass();
    assert_eq!(first.cycle.failures, []);
    let places =
        |world: &World| -> Vec<String> { world.objects.keys().map(ToString::to_string).collect() };
    assert_eq!(
        places(&world),
        ["ConfigMap north/shared", "ConfigMap west/shared"]
    );
    let copy = &world.objects[&key_in(Some("west"), "ConfigMap", "shared")];
    assert_eq!(copy.object()["data"], json!({ "depth": "3" }));
    assert_eq!(copy.object()["metadata"].get("ownerReferences"), None);
    assert_eq!(world.pass().written, []);
    // A namespace that renders to an empty text is skipped.
    world.cr["spec"]["other"] = json!("");
    assert_eq!(world.pass().written.len(), 1);
    assert_eq!(places(&world), ["ConfigMap west/shared"]);
    assert_eq!(world.pass().written, []);
}

#[test]
fn a_config_map_becomes_a_secret_with_its_texts_as_values() {
    let declared = "onReconcile:
  secrets: [{ name: login, fromConfigMap: settings, data: { user: pond } }]";
    let mut world = world(declared, &json!({}));
    let source =
        json!({ "data": { "user": "root", "depth": "3" }, "binaryData": { "raw": "AAE=" } });
    there_is(&mut world, key("ConfigMap", "settings"), &source);
    assert_eq!(world.pass().cycle.failures, []);
    let data = &world.objects[&key("Secret", "login")].object()["data"];
    assert_eq!(
        *data,
        json!({ "user": "cG9uZA==", "depth": "Mw==", "raw": "AAE=" })
    );
    assert_eq!(world.pass().written, []);
}

#[test]
fn policies_quotas_and_limits_are_copied_with_their_spec_and_a_patch_comes_last() {
    let declared = "onReconcile:
  networkPolicies: [{ name: rules, fromNetworkPolicy: house, fromNamespace: infra }]
  resourceQuotas:
    - name: quota
      fromResourceQuota: house
      fromNamespace: infra
      patch: { spec: { hard: { pods: '3', secrets: null } } }
  limitRanges: [{ name: limits, fromLimitRange: house, fromNamespace: infra, toNamespaces: [east, west] }]";
    let mut world = world(declared, &json!({}));
    let policy = json!({ "podSelector": {}, "policyTypes": ["Ingress"] });
    let quota = json!({ "hard": { "pods": "9", "secrets": "2", "services": "1" } });
    let limits = json!({ "limits": [{ "type": "Pod", "max": { "memory": "1Gi" } }] });
    for (kind, spec) in [
        ("NetworkPolicy.networking.k8s.io", &policy),
        ("ResourceQuota", &quota),
        ("LimitRange", &limits),
    ] {
        let source = key_in(Some("infra"), kind, "house");
        // Fields other than the spec are not copied.
        there_is(
            &mut world,
            source,
            &json!({ "spec": spec, "status": { "used": { "pods": "1" } } }),
        );
    }
    assert_eq!(world.pass().cycle.failures, []);
    let object = |world: &World, place: &str, kind: &str, name: &str| {
        let object = world.objects[&key_in(Some(place), kind, name)].object();
        assert_eq!(object.get("status"), None);
        object["spec"].clone()
    };
    let kind = "NetworkPolicy.networking.k8s.io";
    assert_eq!(object(&world, "east", kind, "rules"), policy);
    let hard = json!({ "hard": { "pods": "3", "services": "1" } });
    assert_eq!(object(&world, "east", "ResourceQuota", "quota"), hard);
    for place in ["east", "west"] {
        assert_eq!(object(&world, place, "LimitRange", "limits"), limits);
    }
    assert_eq!(world.pass().written, []);
    let source = key_in(Some("infra"), "ResourceQuota", "house");
    there_is(
        &mut world,
        source,
        &json!({ "spec": { "hard": { "services": "5" } } }),
    );
    assert_eq!(world.pass().written.len(), 1);
    let hard = json!({ "hard": { "pods": "3", "services": "5" } });
    assert_eq!(object(&world, "east", "ResourceQuota", "quota"), hard);
}

#[test]
fn a_quota_is_made_in_each_namespace_without_any_source() {
    let declared = "onReconcile:
  resourceQuotas: [{ name: quota, hard: { pods: 3 }, toNamespaces: [west, north] }]";
    let mut world = world(declared, &json!({}));
    assert_eq!(world.pass().written.len(), 2);
    for place in ["west", "north"] {
        let quota = &world.objects[&key_in(Some(place), "ResourceQuota", "quota")];
        assert_eq!(quota.object()["spec"], json!({ "hard": { "pods": "3" } }));
    }
    assert_eq!(world.pass().written, []);
}
