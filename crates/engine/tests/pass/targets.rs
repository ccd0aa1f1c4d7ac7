//! Target namespaces: children are created only in namespaces that the Katalog permits.

use std::sync::Arc;

use orkestra_engine::reconcile::{
    reason::Reason,
    sources::{Answer, Read},
};
use orkestra_object::value::Node;
use orkestra_plan::ChildKey;
use serde_json::{Value, json};

use super::{
    operator::{cluster_operator, cluster_pond, operator_with, pond},
    world::{World, key_in, words},
};

const CHOSEN: &str = "onReconcile:
  configMaps: [{ name: a }, { name: b, namespace: '{{ .spec.where }}' }]";
const CREATED: &str = "onReconcile:
  namespaces: [{ name: '{{ .spec.where }}' }]
  configMaps: [{ name: b, namespace: '{{ .spec.where }}' }]";

fn world(line: &str, declared: &str, namespace: &str) -> World {
    let spec = json!({ "where": namespace });
    World::new(&operator_with(line, declared), pond(&spec, &json!({})))
}

/// Returns the intents, and the reasons of the failures.
fn outcome(world: &World) -> (Vec<String>, Vec<Reason>) {
    let cycle = world.decide();
    let reasons = cycle.failures.iter().map(|failure| failure.reason);
    (words(&cycle), reasons.collect())
}

fn namespace(name: &str) -> ChildKey {
    key_in(None, "Namespace", name)
}

fn labelled(world: &mut World, name: &str, labels: &Value) {
    let object = json!({ "metadata": { "labels": labels } });
    let found = Answer::Ready(Arc::new(Node::from(&object)));
    world.outside.insert(Read::Object(namespace(name)), found);
}

#[test]
fn a_namespace_is_permitted_by_its_name_and_every_other_one_is_refused() {
    let targets = "allowedTargets: [shared, team-*]";
    for permitted in ["shared", "team-a"] {
        let (intents, failed) = outcome(&world(targets, CHOSEN, permitted));
        let there = format!("apply ConfigMap {permitted}/b");
        assert_eq!(intents, ["apply ConfigMap east/a", &*there]);
        assert_eq!(failed, []);
    }
    for refused in ["kube-system", "my-team-a", "west"] {
        let (intents, failed) = outcome(&world(targets, CHOSEN, refused));
        assert_eq!(intents, ["apply ConfigMap east/a"], "{refused}");
        assert_eq!(failed, [Reason::TargetRefused], "{refused}");
    }
    // The custom resource's own namespace needs no permission.
    let (intents, failed) = outcome(&world(targets, CHOSEN, "east"));
    assert_eq!((intents.len(), failed), (2, vec![]));
}

#[test]
fn a_namespace_is_permitted_by_its_labels_as_they_are_now() {
    let targets = "allowedTargets: [{ matchLabels: { water.example/ponds: 'yes' } }]";
    let mut world = world(targets, CHOSEN, "west");
    // A namespace that does not exist has no labels.
    assert_eq!(outcome(&world).1, [Reason::TargetRefused]);
    labelled(&mut world, "west", &json!({ "water.example/ponds": "no" }));
    assert_eq!(outcome(&world).1, [Reason::TargetRefused]);
    labelled(&mut world, "west", &json!({ "water.example/ponds": "yes" }));
    let (intents, failed) = outcome(&world);
    let both = ["apply ConfigMap east/a", "apply ConfigMap west/b"];
    assert_eq!(
        (intents, failed),
        (both.map(str::to_owned).to_vec(), vec![])
    );
    let unreadable = Answer::Unavailable("no right".into());
    let read = Read::Object(namespace("west"));
    world.outside.insert(read, unreadable);
    assert_eq!(outcome(&world).1, [Reason::Unavailable]);
}

#[test]
fn nothing_is_concluded_of_other_children_while_a_target_is_refused() {
    let mut world = world("allowedTargets: [west]", CHOSEN, "west");
    assert_eq!(world.pass().written.len(), 2);
    world.cr["spec"]["where"] = json!("kube-system");
    let pass = world.pass();
    assert_eq!(pass.cycle.failures[0].reason, Reason::TargetRefused);
    assert_eq!(pass.written, []);
    assert_eq!(world.objects.len(), 2, "existing children must stay");
}

#[test]
fn a_namespace_that_the_operator_creates_has_to_be_its_own() {
    let world = world("workers: 1", CREATED, "west");
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    let intents = ["apply Namespace west", "apply ConfigMap west/b"];
    assert_eq!(words(&cycle), intents);
    let within = super::world::rendered(&cycle, &key_in(Some("west"), "ConfigMap", "b"));
    assert_eq!(within.requires, [namespace("west")]);
    // A namespace that `allowedTargets` permits need not be the operator's own.
    let world = self::world("allowedTargets: [west]", CREATED, "west");
    let cycle = world.decide();
    let within = super::world::rendered(&cycle, &key_in(Some("west"), "ConfigMap", "b"));
    assert_eq!(within.requires, []);
}

#[test]
fn cluster_scoped_custom_resources_choose_freely() {
    let spec = json!({ "where": "kube-system" });
    let declared = "onReconcile:\n  configMaps: [{ name: b, namespace: '{{ .spec.where }}' }]";
    let world = World::new(&cluster_operator(declared), cluster_pond(&spec));
    let (intents, failed) = outcome(&world);
    assert_eq!(intents, ["apply ConfigMap kube-system/b"]);
    assert_eq!(failed, []);
}
