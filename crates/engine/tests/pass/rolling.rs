//! `rollOnChange`: pods are replaced when a Secret or `ConfigMap` that they use changes.

use std::sync::Arc;

use orkestra_engine::reconcile::sources::{Answer, Read};
use orkestra_object::value::Node;
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
    let first = json!({ "value": "YQ==" });
    there_is(&mut world, "ConfigMap", "ca", &first);
    there_is(&mut world, "Secret", "key", &first);
    world
}

fn mark(world: &World) -> Value {
    let pump = world.objects[&key("Deployment.apps", "pump")].object();
    let template = &pump["spec"]["template"]["metadata"];
    template["annotations"]["orkestra.orkspace.io/config-hash"].clone()
}

/// Adds an object that a pass finds.
fn there_is(world: &mut World, kind: &str, name: &str, data: &Value) {
    let object = Node::from(&json!({ "data": data }));
    let read = Read::Object(key(kind, name));
    world.outside.insert(read, Answer::Ready(Arc::new(object)));
}

/// Adds the operator's own Secret, which a pass reads from the API server once the Secret is kept.
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
    // After a rotation, one pass writes the Secret and the pod template, and the next pass writes nothing.
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
fn pods_do_not_roll_into_the_absence_of_what_they_need() {
    let mut world = world();
    world.pass();
    seen(&mut world);
    let before = mark(&world);
    let ca = Read::Object(key("ConfigMap", "ca"));
    let there = world.outside.insert(ca.clone(), Answer::Absent).unwrap();
    assert_eq!(world.pass().written, []);
    // Other changes wait for the missing object too, because new pods could not start.
    there_is(&mut world, "Secret", "key", &json!({ "value": "b25l" }));
    assert_eq!(world.pass().written, []);
    assert_eq!(mark(&world), before);
    world.outside.insert(ca, there);
    assert_eq!(world.pass().written.len(), 1);
    assert_ne!(mark(&world), before);
}

#[test]
fn pods_that_can_start_without_it_roll_when_it_goes() {
    let declared = PONDS.replace(
        "configMap: { name: ca }",
        "configMap: { name: ca, optional: true }",
    );
    let mut world = World::new(
        &operator(&declared),
        pond(&json!({ "depth": "3" }), &json!({})),
    );
    world.now = at(0);
    let there = json!({ "value": "YQ==" });
    for (kind, name) in [
        ("ConfigMap", "ca"),
        ("Secret", "key"),
        ("Secret", "registry"),
    ] {
        there_is(&mut world, kind, name, &there);
    }
    world.pass();
    seen(&mut world);
    for (kind, name) in [("ConfigMap", "ca"), ("Secret", "registry")] {
        let before = mark(&world);
        let read = Read::Object(key(kind, name));
        world.outside.insert(read, Answer::Absent);
        assert_eq!(world.pass().written.len(), 1, "{name}");
        assert_ne!(mark(&world), before, "{name}");
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

/// Each way in which pods refer to a Secret or a `ConfigMap`, with a separate object for each.
const WAYS: &str = "rollOnChange: true
      image: pump:1
      env: { A: { secretKeyRef: { name: s1, key: a } }, B: { configMapKeyRef: { name: c1, key: b } } }
      envFrom: [{ secretRef: s2 }, { configMapRef: c2 }]
      imagePullSecrets: [s3]
      volumes:
        - { name: a, secret: { secretName: s4 } }
        - { name: b, configMap: { name: c4 } }
        - { name: c, projected: { sources: [{ secret: { name: s5 } }, { configMap: { name: c5 } }] } }
        - { name: d, csi: { driver: store.example, nodePublishSecretRef: { name: s6 } } }
      containers: [{ name: log, image: log:1, envFrom: [{ secretRef: { name: s7 } }] }]
      initContainers: [{ name: fill, image: fill:1, env: [{ name: C, valueFrom: { configMapKeyRef: { name: c7, key: c } } }] }]";

#[test]
fn every_kind_that_rolls_does_so_with_everything_that_its_pods_name() {
    let patch = |way: &str| {
        let mut patch = "{ containers: [{ name: late, image: late:1, env: [{ name: D, valueFrom: { secretKeyRef: { name: s8, key: d } } }] }] }".to_owned();
        for part in way.rsplit('.') {
            patch = format!("{{ {part}: {patch} }}");
        }
        patch
    };
    for (list, kind, way, more) in [
        ("deployments", "Deployment.apps", "spec.template.spec", ""),
        ("statefulSets", "StatefulSet.apps", "spec.template.spec", ""),
        ("daemonSets", "DaemonSet.apps", "spec.template.spec", ""),
        (
            "cronJobs",
            "CronJob.batch",
            "spec.jobTemplate.spec.template.spec",
            "\n      schedule: '0 4 * * *'",
        ),
    ] {
        let patch = patch(way);
        let declared = format!(
            "onReconcile:\n  {list}:\n    - name: pump\n      {WAYS}{more}\n      patch: {patch}"
        );
        let mut world = World::new(&operator(&declared), pond(&json!({}), &json!({})));
        world.now = at(0);
        let secrets = (1..=8).map(|n| ("Secret", format!("s{n}")));
        let maps = [1, 2, 4, 5, 7].map(|n| ("ConfigMap", format!("c{n}")));
        let used: Vec<_> = secrets.chain(maps).collect();
        for (used, name) in &used {
            there_is(&mut world, used, name, &json!({ "value": "YQ==" }));
        }
        assert_eq!(world.pass().cycle.failures, [], "{list}");
        assert_eq!(world.pass().written, [], "{list}");
        let template = format!("/{}", way.replace('.', "/").trim_end_matches("/spec"));
        let mark = |world: &World| {
            let object = world.objects[&key(kind, "pump")].object();
            let hash = format!("{template}/metadata/annotations/orkestra.orkspace.io~1config-hash");
            object.pointer(&hash).cloned().unwrap_or_default()
        };
        for (used, name) in used {
            let before = mark(&world);
            there_is(&mut world, used, &name, &json!({ "value": "b25l" }));
            assert_eq!(world.pass().written.len(), 1, "{list}: {used} {name}");
            assert_ne!(before, mark(&world), "{list}: {used} {name}");
            assert_eq!(world.pass().written, [], "{list}: {used} {name}");
        }
    }
}

#[test]
fn pods_roll_after_a_secret_was_created_again_and_not_before() {
    let mut world = world();
    world.pass();
    seen(&mut world);
    let before = mark(&world);
    // Its values are random: were the creation refused, each pass would roll the pods.
    world.objects.remove(&key("Secret", "login"));
    let pass = world.pass();
    assert_eq!(pass.written.len(), 1);
    assert_eq!(pass.cycle.rolls_after, [key("Secret", "login")].into());
    assert_eq!(mark(&world), before);
    seen(&mut world);
    assert_eq!(world.pass().written.len(), 1);
    assert_ne!(mark(&world), before);
}
