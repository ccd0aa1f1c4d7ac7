//! Pods that roll when a Secret or a `ConfigMap` changes that they use.

use std::sync::Arc;

use orkestra_core::{
    reconcile::sources::{Answer, Read},
    value::Node,
};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    report::at,
    world::{World, key},
};

const PONDS: &str = "onCreate:
  secrets:
    - name: login
      rotateAfter: 1h
      data: { password: '{{ randomAlphanumeric 16 }}' }
onReconcile:
  configMaps: [{ name: settings, data: { depth: '{{ .spec.depth }}' } }]
  deployments:
    - name: pump
      image: pump:1
      rollOnChange: true
      envFrom: [{ secretRef: login }]
      env: { DEPTH: { configMapKeyRef: { name: settings, key: depth } } }
      imagePullSecrets: [registry]
      volumes:
        - { name: ca, projected: { sources: [{ configMap: { name: ca } }] } }
        - { name: key, secret: { secretName: key } }";

fn world() -> World {
    let mut world = World::new(&operator(PONDS), pond(&json!({ "depth": "3" }), &json!({})));
    world.now = at(0);
    world
}

fn mark(world: &World) -> Value {
    let pump = world.objects[&key("Deployment.apps", "pump")].object();
    let template = &pump["spec"]["template"]["metadata"];
    template["annotations"]["orkestra.orkspace.io/config-hash"].clone()
}

/// What a pass finds of an object.
fn there_is(world: &mut World, kind: &str, name: &str, data: &Value) {
    let object = Node::from(&json!({ "data": data }));
    let read = Read::Object(key(kind, name));
    world.outside.insert(read, Answer::Ready(Arc::new(object)));
}

/// The own Secret as the API server has it, which a pass reads once the Secret is kept.
fn seen(world: &mut World) {
    let login = world.objects[&key("Secret", "login")].object();
    there_is(world, "Secret", "login", &login["data"]);
}

#[test]
fn pods_roll_with_what_the_same_custom_resource_has() {
    let mut world = world();
    assert_eq!(world.pass().cycle.failures, []);
    let first = mark(&world);
    assert!(first.is_string());
    seen(&mut world);
    assert_eq!(world.pass().written, []);
    world.cr["spec"]["depth"] = json!("4");
    assert_eq!(world.pass().written.len(), 2);
    let second = mark(&world);
    assert_ne!(first, second);
    // A rotation: Secret and pods in one pass, and no more after it.
    world.now = at(3600);
    assert_eq!(world.pass().written.len(), 2);
    assert_ne!(second, mark(&world));
    seen(&mut world);
    assert_eq!(world.pass().written, []);
}

#[test]
fn pods_roll_with_what_others_have() {
    let mut world = world();
    world.pass();
    seen(&mut world);
    let mut marks = vec![mark(&world)];
    for (kind, name) in [
        ("Secret", "registry"),
        ("ConfigMap", "ca"),
        ("Secret", "key"),
    ] {
        for value in ["b25l", "dHdv"] {
            there_is(&mut world, kind, name, &json!({ "value": value }));
            assert_eq!(world.pass().written.len(), 1, "{kind} {name}");
            assert!(!marks.contains(&mark(&world)), "{kind} {name}");
            marks.push(mark(&world));
            assert_eq!(world.pass().written, []);
        }
    }
}

#[test]
fn pods_stay_as_they_are_while_something_cannot_be_read() {
    let mut world = world();
    world.pass();
    seen(&mut world);
    let read = Read::Object(key("ConfigMap", "ca"));
    world
        .outside
        .insert(read, Answer::Unavailable("no right".into()));
    world.cr["spec"]["depth"] = json!("4");
    let pass = world.pass();
    assert_eq!(pass.written, [key("ConfigMap", "settings")]);
    assert!(pass.cycle.failures[0].message.contains("ConfigMap east/ca"));
}
