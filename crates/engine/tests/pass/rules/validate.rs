//! Validation: violations of rules are reported, and no child is created.

use orkestra_engine::reconcile::{inventory::Inventory, reason::Reason};
use serde_json::{Value, json};

use super::{conditions, reported, world};
use crate::pass::world::words;

const DEMANDS: &str = "mutation: { rules: [{ field: spec.tier, default: gold }] }
validation:
  rules:
    - { field: spec.tier, equals: gold, message: mutation comes first }
    - { field: spec.image, exists: true, message: '{{ .metadata.name }} needs an image' }
    - { field: spec.image, exists: true }
    - { name: one port, field: .spec.port, operator: equals, value: 80, message: 'not {{ .spec.port }}' }
    - { field: spec.open, equals: true, message: better open, action: warn }
    - { field: spec.schedule, equals: daily, message: daily or never, optional: true }
    - { field: spec.replicas, equals: 3, message: gold is three, when: [{ field: spec.tier, equals: silver }] }";

#[test]
fn a_resource_that_keeps_its_rules_is_worked_on() {
    let spec = json!({ "image": "nginx", "port": 80, "open": true });
    let cycle = world(DEMANDS, &spec).decide();
    assert_eq!(reported(&cycle.failures), [] as [&str; 0]);
    assert_eq!(words(&cycle), ["apply ConfigMap east/seen"]);
}

#[test]
fn every_rule_that_is_not_kept_is_reported_and_nothing_is_touched() {
    let spec = json!({ "image": "nginx", "port": 80, "open": true });
    let mut world = world(DEMANDS, &spec);
    world.settle();
    let inventory = world.cr().inventory.clone();
    world.cr["spec"] = json!({ "port": 81, "schedule": "hourly" });
    let cycle = world.decide();
    assert_eq!(
        reported(&cycle.failures),
        [
            "ValidationFailed: spec.image: pond needs an image",
            "ValidationFailed: spec.image: is required",
            "ValidationFailed: one port: not 81",
            "ValidationFailed: spec.schedule: daily or never",
        ]
    );
    assert_eq!(words(&cycle), [] as [&str; 0]);
    assert_eq!(cycle.inventory, *inventory);
    assert!(
        cycle
            .failures
            .iter()
            .all(|failure| failure.reason.is_permanent())
    );
    let (conditions, status) = conditions(&world, &cycle);
    let message = "spec.image: pond needs an image; spec.image: is required; one port: not 81; spec.schedule: daily or never";
    assert_eq!(
        conditions,
        [
            // `Ready` names the first and counts the others; `Stalled` names all.
            "Ready/ValidationFailed: spec.image: pond needs an image; and 3 more".to_owned(),
            format!("Stalled/ValidationFailed: {message}"),
            "Mutated/InMemory: spec.tier in memory: rules complete it".to_owned(),
            "ValidationWarning/ValidationFailed: spec.open: better open".to_owned(),
        ]
    );
    // A status field without a condition is written only after a pass without failures.
    assert_eq!(status["image"], Value::Null);
}

#[test]
fn a_warning_does_not_stop_the_work() {
    let spec = json!({ "image": "nginx", "port": 80, "open": false });
    let world = world(DEMANDS, &spec);
    let cycle = world.decide();
    assert_eq!(words(&cycle), ["apply ConfigMap east/seen"]);
    assert_eq!(cycle.sources.prepared.warnings, ["spec.open: better open"]);
    let (conditions, status) = conditions(&world, &cycle);
    assert!(
        conditions
            .contains(&"ValidationWarning/ValidationFailed: spec.open: better open".to_owned())
    );
    assert_eq!(
        (&status["image"], &status["reported"]),
        (&json!("nginx"), &json!("yes"))
    );
}

#[test]
fn a_refused_resource_makes_nothing_before_its_first_child_either() {
    let cycle = world(DEMANDS, &json!({})).decide();
    assert!(cycle.intents.is_empty() && cycle.inventory == Inventory::default());
}

#[test]
fn rules_may_ask_about_children_and_the_status() {
    let entry = "validation:
  rules:
    - { field: status.locked, notEquals: 'yes', message: it is locked }
    - { field: children.configMap.data.spec, exists: true, message: no map yet, action: warn }";
    let mut world = world(entry, &json!({}));
    assert_eq!(
        world.decide().sources.prepared.warnings,
        ["children.configMap.data.spec: no map yet"]
    );
    world.settle();
    assert!(world.decide().sources.prepared.warnings.is_empty());
    world.cr["status"]["locked"] = json!("yes");
    assert_eq!(
        reported(&world.decide().failures),
        ["ValidationFailed: status.locked: it is locked"]
    );
}

#[test]
fn a_rule_over_what_cannot_be_seen_holds_the_pass_and_does_not_refuse_for_good() {
    let entry = "validation:
  rules: [{ field: children.configMap.data.spec, exists: true, message: no map }]";
    let mut world = world(entry, &json!({}));
    world
        .unseen
        .insert(orkestra_plan::GroupKind::parse("ConfigMap"));
    let cycle = world.decide();
    let reasons: Vec<Reason> = cycle
        .failures
        .iter()
        .map(|failure| failure.reason)
        .collect();
    assert_eq!(reasons, [Reason::Unavailable]);
    assert!(cycle.intents.is_empty());
}
