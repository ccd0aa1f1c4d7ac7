//! `normalize`: values of the spec in a canonical form. Passes always use it, and it is stored once, unless another manager owns
//! the field.

use orkestra_object::value::Node;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{conditions, seen, world};
use crate::pass::world::World;

const CRON: &str = "normalize: { spec: { schedule: '{{ cronFromAny .spec.schedule }}' } }";

/// Returns the merge patch of the spec that the pass requests, or null.
fn patch(world: &World) -> Value {
    let reported = world.decide().sources.prepared.normalization.unwrap();
    reported.patch.as_ref().map_or(Value::Null, Node::to_json)
}

/// Returns the condition `Normalized` after a pass.
fn normalized(world: &World) -> String {
    let (conditions, _) = conditions(world, &world.decide());
    let mut found = conditions
        .into_iter()
        .filter_map(|line| line.strip_prefix("Normalized/").map(str::to_owned));
    found.next().unwrap()
}

/// Stores the requested patch like the API server.
fn store(world: &mut World) {
    fn merge(target: &mut Value, patch: &Value) {
        match (target, patch) {
            (Value::Object(target), Value::Object(patch)) => {
                for (key, value) in patch {
                    merge(target.entry(key).or_insert(Value::Null), value);
                }
            }
            (target, patch) => *target = patch.clone(),
        }
    }
    let patch = patch(world);
    merge(&mut world.cr["spec"], &patch);
}

#[test]
fn a_value_is_brought_to_its_form_and_stored_once() {
    let mut world = world(CRON, &json!({ "schedule": " @daily ", "tier": "gold" }));
    let form = json!({ "schedule": "0 0 * * *", "tier": "gold" });
    assert_eq!(seen(&world.decide()), form);
    assert_eq!(patch(&world), json!({ "schedule": "0 0 * * *" }));
    let reported = "Persisted: the custom resource stores all normalized fields in normalized form";
    assert_eq!(normalized(&world), reported);
    store(&mut world);
    assert_eq!(patch(&world), Value::Null);
    assert_eq!(
        (seen(&world.decide()), &*normalized(&world)),
        (form, reported)
    );
    // Another client changes the field later.
    world.cr["spec"]["schedule"] = json!("@hourly");
    assert_eq!(patch(&world), json!({ "schedule": "0 * * * *" }));
}

#[test]
fn what_kubectl_apply_declares_is_left_to_it() {
    let mut world = world(CRON, &json!({ "schedule": "@daily" }));
    let applied = json!({ "spec": { "schedule": "@daily" } }).to_string();
    let annotations = json!({ "kubectl.kubernetes.io/last-applied-configuration": applied });
    world.cr["metadata"]["annotations"] = annotations;
    assert_eq!(seen(&world.decide()), json!({ "schedule": "0 0 * * *" }));
    assert_eq!(patch(&world), Value::Null);
    assert_eq!(
        normalized(&world),
        "InMemory: spec.schedule in memory: `kubectl apply` declares it"
    );
}

#[test]
fn templates_read_what_was_changed_where_that_is_asked_for() {
    let audit = "normalize: { audit: true, spec: { schedule: '{{ cronFromAny .spec.schedule }}', tier: '{{ .spec.tier }}' } }";
    let world = world(audit, &json!({ "schedule": "@daily", "tier": "gold" }));
    assert_eq!(
        world.decide().sources.roots["_normalizeChanges"].to_json(),
        json!([{ "field": "schedule", "from": "@daily", "to": "0 0 * * *" }])
    );
}

#[test]
fn all_see_the_resource_as_it_was_written() {
    let entry = "normalize:
  spec:
    tier: '{{ toLower .spec.tier }}'
    image: '{{ .spec.tier }}'
mutation: { rules: [{ field: spec.replicas, default: '{{ len .spec.tier }}' }] }";
    let world = world(entry, &json!({ "tier": "GOLD" }));
    assert_eq!(
        seen(&world.decide()),
        json!({ "tier": "gold", "image": "GOLD", "replicas": 4 })
    );
    // A stored value of `image` would change again in the next pass.
    assert_eq!(patch(&world), Value::Null);
    assert_eq!(
        normalized(&world),
        "InMemory: spec.image, spec.tier in memory: the stored value would be normalized to another one"
    );
}

#[test]
fn values_become_what_the_definition_takes_and_paths_nest() {
    let entry = "normalize:
  spec:
    more.depth: '{{ .spec.any.depth }}'
    replicas: '{{ .spec.any.replicas }}'
    any.list: '{{ toList .spec.any.list }}'
    tier: '{{ .spec.any.nothing }}'";
    let world = world(
        entry,
        &json!({ "any": { "depth": "2.50", "replicas": "3", "list": "one" } }),
    );
    assert_eq!(
        patch(&world),
        json!({ "more": { "depth": 2.5 }, "replicas": 3, "any": { "list": ["one"] } })
    );
}

#[test]
fn a_value_that_fits_nothing_holds_the_pass() {
    let entry = "normalize: { spec: { replicas: '{{ .spec.any.replicas }}' } }";
    let cycle = world(entry, &json!({ "any": { "replicas": "many" } })).decide();
    let [failure] = &cycle.failures[..] else {
        panic!("{:?}", cycle.failures)
    };
    assert_eq!(failure.at, "spec.crds.pond.normalize.spec.replicas");
    assert!(cycle.intents.is_empty() && cycle.sources.prepared.normalization.is_none());
}

#[test]
fn who_applies_the_field_or_tracks_the_resource_keeps_it() {
    let entry = json!({ "manager": "kubectl", "operation": "Apply", "apiVersion": "water.example/v1",
        "fieldsType": "FieldsV1", "fieldsV1": { "f:spec": { "f:schedule": {} } } });
    let cases = [
        ("managedFields", json!([entry]), "`kubectl` applies it"),
        (
            "annotations",
            json!({ "argocd.argoproj.io/tracking-id": "x" }),
            "Argo CD tracks the resource (`argocd.argoproj.io/tracking-id`)",
        ),
        (
            "labels",
            json!({ "kustomize.toolkit.fluxcd.io/name": "x" }),
            "Flux tracks the resource (`kustomize.toolkit.fluxcd.io/name`)",
        ),
    ];
    for (field, value, why) in cases {
        let mut world = world(CRON, &json!({ "schedule": "@daily" }));
        world.cr["metadata"][field] = value;
        assert_eq!(patch(&world), Value::Null, "{why}");
        assert_eq!(seen(&world.decide()), json!({ "schedule": "0 0 * * *" }));
        assert_eq!(
            normalized(&world),
            format!("InMemory: spec.schedule in memory: {why}")
        );
        // A value that is already in its canonical form needs no write, even if another manager owns the field.
        world.cr["spec"]["schedule"] = json!("0 0 * * *");
        assert!(normalized(&world).starts_with("Persisted: "));
    }
}

#[test]
fn one_field_may_be_held_and_another_stored() {
    let entry = "normalize: { spec: { schedule: '{{ cronFromAny .spec.schedule }}', tier: '{{ toLower .spec.tier }}' } }";
    let mut world = world(entry, &json!({ "schedule": "@daily", "tier": "GOLD" }));
    world.cr["metadata"]["managedFields"] = json!([{ "manager": "kubectl", "operation": "Apply",
        "fieldsV1": { "f:spec": { "f:tier": {} } } }]);
    assert_eq!(patch(&world), json!({ "schedule": "0 0 * * *" }));
    let reported = "InMemory: spec.tier in memory: `kubectl` applies it";
    assert_eq!(normalized(&world), reported);
    store(&mut world);
    assert_eq!(
        (patch(&world), &*normalized(&world)),
        (Value::Null, reported)
    );
}

#[test]
fn nothing_is_stored_that_is_not_to_be_or_that_the_definition_lacks() {
    let spec = json!({ "schedule": "@daily" });
    let declared = format!("{}, persist: false }}", &CRON[..CRON.len() - 2]);
    assert_eq!(
        normalized(&world(&declared, &spec)),
        "InMemory: spec.schedule in memory: `persist: false`"
    );
    // The spelling of the founding documents.
    let typo = CRON.replace("{ schedule:", "{ chedule:");
    let world = world(&typo, &spec);
    assert_eq!(patch(&world), Value::Null);
    assert_eq!(
        normalized(&world),
        "InMemory: spec.chedule in memory: the definition has no such field"
    );
    assert_eq!(
        seen(&world.decide()),
        json!({ "schedule": "@daily", "chedule": "0 0 * * *" })
    );
}

#[test]
fn a_list_on_the_way_is_not_replaced() {
    let entry = "normalize: { spec: { any.list.first: x } }";
    let world = world(entry, &json!({ "any": { "list": [1] } }));
    assert_eq!(patch(&world), Value::Null);
    assert_eq!(
        normalized(&world),
        "InMemory: spec.any.list.first in memory: `spec.any.list` is a list"
    );
}

#[test]
fn a_template_that_never_settles_stores_nothing() {
    let entry = "normalize: { spec: { tier: '{{ .spec.tier }}-x' } }";
    let world = world(entry, &json!({ "tier": "a" }));
    assert_eq!(seen(&world.decide()), json!({ "tier": "a-x" }));
    assert_eq!(patch(&world), Value::Null);
    assert_eq!(
        normalized(&world),
        "InMemory: spec.tier in memory: the stored value would be normalized to another one"
    );
}

#[test]
fn a_refused_resource_is_brought_to_its_form_all_the_same() {
    let entry = format!(
        "{CRON}\nvalidation: {{ rules: [{{ field: spec.image, exists: true, message: an image }}] }}"
    );
    let world = world(&entry, &json!({ "schedule": "@daily" }));
    assert_eq!(patch(&world), json!({ "schedule": "0 0 * * *" }));
    assert!(world.decide().intents.is_empty());
}

proptest! {
    /// A stored value is the value that the next pass computes: there is one write, and the children do not change.
    #[test]
    fn a_pass_over_its_own_result_changes_nothing(
        tier in "[ a-zA-Z]{0,6}", schedule in "(@daily|@hourly| ?[0-9] \\* \\* \\* \\* ?|nonsense)?", image in "[A-Z /]{0,6}", replicas in 0..3i64,
    ) {
        let entry = "normalize:
  spec:
    tier: '{{ trim .spec.tier }}'
    schedule: '{{ cronFromAny .spec.schedule }}'
    image: '{{ toLower .spec.image }}'
    more.depth: '{{ .spec.replicas }}'
mutation:
  rules:
    - { field: spec.tier, default: gold }
    - { field: spec.port, override: '{{ add .spec.replicas 80 }}' }";
        let mut world = world(entry, &json!({ "tier": tier, "schedule": schedule, "image": image, "replicas": replicas }));
        let first = world.decide();
        prop_assert!(first.failures.is_empty(), "{:?}", first.failures);
        let before = seen(&first);
        store(&mut world);
        prop_assert_eq!(patch(&world), Value::Null);
        prop_assert_eq!(seen(&world.decide()), before);
    }
}
