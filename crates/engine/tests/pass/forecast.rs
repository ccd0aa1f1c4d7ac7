//! A forecast of another revision says what a pass of it then does, object for object and field for field.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_engine::reconcile::{
    forecast::{PlannedAction, PlannedWrite, forecast},
    preview::Assumptions,
};
use orkestra_object::value::Node;
use orkestra_plan::ChildKey;
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key},
};

/// Returns the objects of a world as the API server returns them.
fn objects(world: &World) -> Vec<Node> {
    let stored = world.objects.values();
    stored.map(|one| Node::from(&one.object())).collect()
}

fn predicted(world: &World, scaled: &BTreeSet<ChildKey>) -> Vec<PlannedWrite> {
    let children = objects(world);
    let assumed = Assumptions {
        cr: Node::from(&world.cr),
        children: &children,
        cross: &[],
        version: None,
        calls: &BTreeMap::new(),
        scopes: &BTreeMap::new(),
        now: world.now,
        seen_as: None,
    };
    forecast(&world.plan, assumed, scaled).unwrap().1
}

/// Returns the world of the first revision, settled, with the plan of the second.
fn changed(before: &str, after: &str, spec: &Value) -> World {
    let mut world = World::new(&operator(before), pond(spec, &json!({})));
    world.settle();
    world.plan = operator(after);
    world.scopes = super::world::scopes(&world.plan);
    world
}

/// Returns the value at a path as a forecast writes it: `data.a`, `spec.ports[port=80,protocol=TCP].name`.
fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = object;
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (keys, after) = inside.split_once(']')?;
            let is_it = |item: &&Value| {
                keys.split(',').all(|pair| {
                    pair.split_once('=')
                        .is_some_and(|(name, text)| match &item[name] {
                            Value::String(found) => found == text,
                            Value::Null => text == "TCP",
                            other => *other == json!(text.parse::<i64>().unwrap()),
                        })
                })
            };
            value = value.as_array()?.iter().find(is_it)?;
            rest = after;
        } else {
            let word = rest.trim_start_matches('.');
            let end = word.find(['.', '[']).unwrap_or(word.len());
            value = value.get(&word[..end])?;
            rest = &word[end..];
        }
    }
    Some(value)
}

const BEFORE: &str = r#"
onReconcile:
  configMaps: [{ name: own, data: { a: "1", gone: x, depth: "{{ .spec.depth }}" } }]
  secrets: [{ name: key, data: { a: b } }]
  services: [{ name: web, selector: { app: x }, ports: [{ name: http, port: 80 }, { name: dns, port: 53, protocol: UDP }] }]
  deployments: [{ name: web, image: "web:1", replicas: 2, port: 80, env: { A: "1", B: "2" } }]
"#;

const AFTER: &str = r#"
onReconcile:
  configMaps: [{ name: own, data: { a: "2", more: y, depth: "{{ .spec.depth }}" } }]
  services: [{ name: web, selector: { app: x }, ports: [{ name: http, port: 80 }, { name: tls, port: 443 }] }]
  deployments: [{ name: web, image: "web:2", replicas: 3, port: 80, env: { A: "1", C: "3" }, labels: { tier: gold } }]
  serviceAccounts: [{ name: web }]
"#;

#[test]
fn what_is_forecast_is_what_a_pass_does() {
    for (before, after) in [(BEFORE, AFTER), (AFTER, BEFORE)] {
        let mut world = changed(before, after, &json!({ "depth": 3 }));
        let planned = predicted(&world, &BTreeSet::new());
        let live: BTreeMap<ChildKey, Value> = world
            .objects
            .iter()
            .map(|(key, one)| (key.clone(), one.object()))
            .collect();
        let pass = world.pass();
        let written: BTreeSet<&ChildKey> = pass.written.iter().collect();
        let said: BTreeSet<&ChildKey> = planned.iter().map(|one| &one.key).collect();
        assert_eq!(said, written, "{planned:#?}");
        for PlannedWrite { key, action, .. } in &planned {
            let now = world.objects.get(key).map(super::server::Stored::object);
            match action {
                PlannedAction::Create => assert!(!live.contains_key(key) && now.is_some(), "{key}"),
                PlannedAction::Delete => assert!(now.is_none(), "{key}"),
                PlannedAction::Update(fields) => {
                    let (was, now) = (&live[key], now.unwrap());
                    assert!(!fields.is_empty(), "{key}");
                    for field in fields {
                        let json = |node: &Option<Node>| node.as_ref().map(Node::to_json);
                        let before = json(&field.before);
                        assert_eq!(
                            at(was, &field.path),
                            before.as_ref(),
                            "{key} {}",
                            field.path
                        );
                        if field.after.is_none() {
                            assert_eq!(at(&now, &field.path), None, "{key} {}", field.path);
                        } else {
                            assert!(at(&now, &field.path).is_some(), "{key} {}", field.path);
                        }
                    }
                }
                other => panic!("{key}: {other:?}"),
            }
        }
        assert!(world.pass().written.is_empty());
        assert_eq!(
            predicted(&world, &BTreeSet::new()),
            [],
            "a second pass would write"
        );
    }
}

#[test]
fn fields_of_lists_with_keys_are_named_by_their_items() {
    let world = changed(BEFORE, AFTER, &json!({ "depth": 3 }));
    let planned = predicted(&world, &BTreeSet::new());
    let of = |kind: &str, name: &str| -> Vec<&str> {
        let found = planned
            .iter()
            .find(|one| one.key == key(kind, name))
            .unwrap();
        found
            .action
            .fields()
            .iter()
            .map(|field| &*field.path)
            .collect()
    };
    assert_eq!(of("ConfigMap", "own"), ["data.a", "data.more", "data.gone"]);
    let web = of("Deployment.apps", "web");
    for path in [
        "metadata.labels.tier",
        "spec.replicas",
        "spec.template.spec.containers[name=web].image",
        "spec.template.spec.containers[name=web].env[name=C]",
        "spec.template.spec.containers[name=web].env[name=B]",
    ] {
        assert!(web.contains(&path), "{path}: {web:?}");
    }
    let ports = of("Service", "web");
    assert!(
        ports.contains(&"spec.ports[port=443,protocol=TCP]"),
        "{ports:?}"
    );
    assert!(
        ports.contains(&"spec.ports[port=53,protocol=UDP]"),
        "{ports:?}"
    );
}

#[test]
fn what_a_pass_leaves_alone_is_not_forecast() {
    // Replicas that an autoscaler sets.
    let replicas = |count: u8| {
        format!(
            "onReconcile:\n  deployments: [{{ name: web, image: \"web:1\", replicas: {count} }}]"
        )
    };
    let world = changed(&replicas(2), &replicas(3), &json!({}));
    let web = key("Deployment.apps", "web");
    assert_eq!(predicted(&world, &BTreeSet::from([web.clone()])), []);
    assert_eq!(predicted(&world, &BTreeSet::new()).len(), 1);
    // A field that another manager applies.
    let mut world = changed(BEFORE, BEFORE, &json!({ "depth": 3 }));
    let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "own" }, "data": { "a": "9" } });
    world
        .stored("ConfigMap", "own")
        .apply(&body, "kubectl", true)
        .unwrap();
    assert_eq!(predicted(&world, &BTreeSet::new()), []);
    // A child that is created once.
    let once =
        |text: &str| format!("onCreate:\n  configMaps: [{{ name: own, data: {{ a: {text} }} }}]");
    assert_eq!(
        predicted(
            &changed(&once("x"), &once("y"), &json!({})),
            &BTreeSet::new()
        ),
        []
    );
}

#[test]
fn immutable_fields_are_refused_or_replace_the_object() {
    let set = |storage: &str, word: &str| {
        format!(
            "onReconcile:\n  statefulSets: [{{ name: db, image: \"db:1\", serviceName: {storage}{word} }}]"
        )
    };
    let action = |after: &str| {
        let planned = predicted(&changed(&set("a", ""), after, &json!({})), &BTreeSet::new());
        planned.into_iter().next().unwrap().action
    };
    let PlannedAction::Immutable(fields) = action(&set("b", "")) else {
        panic!("not refused")
    };
    assert_eq!(fields[0].path, "spec.serviceName");
    let PlannedAction::Replace(fields) = action(&set("b", ", onImmutable: recreate")) else {
        panic!("not replaced")
    };
    assert_eq!(fields[0].path, "spec.serviceName");
}

#[test]
fn an_object_of_somebody_else_is_refused_or_adopted() {
    let named = |more: &str| {
        format!("onReconcile:\n  configMaps: [{{ name: own, data: {{ a: b }}{more} }}]")
    };
    let action = |declared: &str, controller: Value| {
        let other = Node::from(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": "own", "namespace": "east", "uid": "o", "ownerReferences": controller },
        }));
        let plan = operator(declared);
        PlannedAction::of_stranger(&plan, Some(&*plan.children[0].path), &other)
    };
    let controlled =
        json!([{ "apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "u", "controller": true }]);
    assert!(matches!(
        action(&named(""), json!([])),
        PlannedAction::Refuse(_)
    ));
    assert!(matches!(
        action(&named(", adopt: true"), json!([])),
        PlannedAction::Adopt(_)
    ));
    assert!(matches!(
        action(&named(", adopt: true"), controlled),
        PlannedAction::Refuse(_)
    ));
}
