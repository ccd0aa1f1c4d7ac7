//! Determinism: equal input gives equal decisions.

use serde_json::{Value, json};

use super::{
    first::{everything, whole_pond},
    operator::{operator, pond},
    world::{World, key, rendered, words},
};

#[test]
fn the_same_input_gives_the_same_cycle() {
    let (mut one, mut other) = (everything(), everything());
    assert_eq!(one.decide(), other.decide());
    one.settle();
    other.settle();
    assert_eq!(one.decide(), other.decide());
}

#[test]
fn the_order_of_fields_in_the_custom_resource_does_not_matter() {
    let reversed = |value: &Value| -> Value {
        let fields = value.as_object().unwrap().iter().rev();
        let text: Vec<String> = fields
            .map(|(key, value)| format!("{}:{value}", json!(key)))
            .collect();
        serde_json::from_str(&format!("{{{}}}", text.join(","))).unwrap()
    };
    let mut other = everything();
    other.cr["spec"] = reversed(&whole_pond()["spec"]);
    assert_eq!(everything().decide(), other.decide());
}

#[test]
fn a_hash_changes_with_any_value_that_is_rendered_and_with_no_other() {
    let hash = |name: &str, value: Value| {
        let mut world = everything();
        world.cr["spec"][name] = value;
        rendered(&world.decide(), &key("Deployment.apps", "pond"))
            .hash
            .clone()
    };
    let before = hash("image", json!("pump:3"));
    assert_ne!(hash("image", json!("pump:4")), before);
    assert_ne!(hash("readOnly", json!(true)), before);
    assert_eq!(hash("fish", json!("eel")), before);
    assert_eq!(
        hash("replicas", json!("3")),
        before,
        "the field must be an integer in both cases"
    );
}

const READING: &str = "onReconcile:
  configMaps:
    - { name: z-first, data: { at: z } }
    - { name: a-second, data: { at: a } }
  secrets:
    - { name: s, data: { first: '{{ .children.configMap.data.at }}', named: '{{ (index .children.configMaps \"a-second\").data.at }}' } }";

#[test]
fn the_first_child_of_a_kind_is_the_first_that_is_declared() {
    let mut world = World::new(&operator(READING), pond(&json!({}), &json!({})));
    world.settle();
    world.pass();
    let object = rendered(&world.decide(), &key("Secret", "s"))
        .object
        .to_json();
    assert_eq!(object["data"], json!({ "first": "eg==", "named": "YQ==" }));
}

#[test]
fn children_that_do_not_exist_yet_read_as_empty() {
    let world = World::new(&operator(READING), pond(&json!({}), &json!({})));
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    let object = rendered(&cycle, &key("Secret", "s")).object.to_json();
    assert_eq!(object["data"], json!({ "first": "", "named": "" }));
}

#[test]
fn what_is_not_ours_is_not_among_the_children() {
    let mut world = World::new(&operator(READING), pond(&json!({}), &json!({})));
    world.settle();
    let first = world.stored("ConfigMap", "z-first");
    first.owners = first
        .owners
        .values()
        .map(|owned| {
            (
                ("kubectl".to_owned(), super::server::Operation::Update),
                owned.clone(),
            )
        })
        .collect();
    let object = rendered(&world.decide(), &key("Secret", "s"))
        .object
        .to_json();
    assert_eq!(object["data"]["first"], "YQ==");
}

const JOBS: &str = "onCreate:
  custom:
    - { apiVersion: batch/v1, kind: Job, metadata: { name: a-build }, spec: { parallelism: 1, template: {} } }
    - { apiVersion: batch/v1, kind: Job, metadata: { name: b-test }, spec: { parallelism: 2, template: {} }, when: [{ field: spec.test, equals: true }] }
onReconcile:
  configMaps: [{ name: seen, data: { job: '{{ .children.job.metadata.name }}' } }]";

#[test]
fn of_jobs_the_last_that_was_created_counts() {
    let mut world = World::new(&operator(JOBS), pond(&json!({}), &json!({})));
    let seen = |world: &World| {
        rendered(&world.decide(), &key("ConfigMap", "seen"))
            .object
            .to_json()["data"]["job"]
            .clone()
    };
    world.settle();
    assert_eq!(seen(&world), "a-build");
    world.cr["spec"]["test"] = json!(true);
    world.settle();
    assert_eq!(seen(&world), "b-test");
    assert!(words(&world.decide()).contains(&"keep Job.batch east/a-build".to_owned()));
}
