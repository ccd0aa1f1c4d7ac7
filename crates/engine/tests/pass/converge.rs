//! Convergence: after a plan has been applied, there is nothing to write.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_engine::reconcile::{
    sources::{Answer, Read},
    step::Intent,
};
use orkestra_object::value::Node;
use serde_json::json;

use super::{
    first::everything,
    operator::{operator, pond},
    server::Operation,
    world::{World, key, words},
};

#[test]
fn a_second_pass_over_what_the_first_applied_writes_nothing() {
    let mut world = everything();
    assert_eq!(world.pass().written.len(), 13);
    let cycle = world.decide();
    for intent in &cycle.intents {
        if let Intent::Apply(rendered) = intent {
            let found = world.difference(rendered, &[]);
            assert!(!found.needs_write(), "{}: {found:?}", rendered.key);
            assert_eq!(found.held, [], "{}", rendered.key);
        }
    }
    assert_eq!(
        words(&cycle)
            .into_iter()
            .filter(|word| !word.starts_with("apply"))
            .collect::<Vec<_>>(),
        [
            "keep Secret east/pond-once",
            "keep Job.batch east/pond-fill"
        ]
    );
    assert_eq!(world.pass().written, []);
}

#[test]
fn a_changed_value_writes_the_children_that_show_it_and_no_others() {
    let mut world = everything();
    world.pass();
    world.cr["spec"]["fish"] = json!("eel");
    let mut written = world.pass().written;
    written.sort();
    assert_eq!(
        written,
        [
            key("ConfigMap", "pond-config"),
            key("Secret", "pond-secret"),
            key("Secret", "pond-text"),
        ]
    );
    assert_eq!(world.pass().written, []);
}

#[test]
fn a_field_that_is_no_longer_rendered_goes() {
    let mut world = everything();
    world.pass();
    world.cr["spec"].as_object_mut().unwrap().remove("args");
    world.settle();
    let object = world.stored("Deployment.apps", "pond").object();
    let container = &object["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container.get("args"), None);
    assert_eq!(container["workingDir"], "/srv");
}

#[test]
fn a_restart_writes_nothing() {
    let mut world = everything();
    world.settle();
    let mut restarted = everything();
    restarted.objects = world.objects.clone();
    restarted.cr = world.cr.clone();
    assert_eq!(restarted.pass().written, []);
}

#[test]
fn a_deleted_child_comes_back_but_for_one_that_was_made_once() {
    let mut world = everything();
    world.settle();
    world.objects.clear();
    let written = world.pass().written;
    assert!(!written.contains(&key("Secret", "pond-once")));
    assert!(!written.contains(&key("Job.batch", "pond-fill")));
    assert_eq!(written.len(), 11);
    let pass = world.pass();
    assert_eq!(pass.written, []);
    // Only the Secret counts as missing. A Job may be deleted after it has ended.
    let once = key("Secret", "pond-once");
    assert_eq!(pass.cycle.missing, std::slice::from_ref(&once));
    let there = Answer::Ready(Arc::new(Node::from(&json!({ "data": {} }))));
    world.outside.insert(Read::Object(once), there);
    assert_eq!(world.pass().cycle.missing, []);
}

#[test]
fn a_child_that_was_made_once_is_not_changed_back() {
    let mut world = everything();
    world.settle();
    world.cr["spec"]["seed"] = json!("other");
    world
        .stored("Secret", "pond-once")
        .update("kubectl", BTreeMap::clear);
    assert_eq!(world.pass().written, []);
}

#[test]
fn two_ports_of_one_number_are_distinguished_without_a_declared_protocol() {
    let plan = operator(
        "onReconcile:
  custom:
    - apiVersion: v1
      kind: Service
      metadata: { name: dns }
      spec:
        ports:
          - { name: tcp, port: 53, targetPort: 5300 }
          - { name: udp, port: 53, targetPort: 5300, protocol: UDP }",
    );
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.settle();
    let before = world.stored("Service", "dns").leaves.clone();
    world.stored("Service", "dns").update("kubectl", |leaves| {
        leaves.retain(|trail, _| !format!("{trail:?}").contains("TCP"));
    });
    assert_eq!(world.pass().written.len(), 1);
    assert_eq!(world.stored("Service", "dns").leaves, before);
}

#[test]
fn a_child_of_another_operator_with_the_same_values_is_not_ours() {
    let mut world = everything();
    world.settle();
    let stored = world.stored("ConfigMap", "pond-config");
    let owned = stored
        .owners
        .remove(&("orkestra/ponds.water.example".to_owned(), Operation::Apply))
        .unwrap();
    stored.owners.insert(
        ("orkestra/lakes.water.example".to_owned(), Operation::Apply),
        owned,
    );
    let observed = world.observe();
    let record = observed.child(&key("ConfigMap", "pond-config")).unwrap();
    assert!(!record.is_ours(&observed.cr.id.uid, "orkestra/ponds.water.example"));
    assert!(record.is_ours(&observed.cr.id.uid, "orkestra/lakes.water.example"));
}
