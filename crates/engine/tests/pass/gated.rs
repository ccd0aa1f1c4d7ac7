//! The status of a custom resource while a gate of `preReconcile` is closed.

use orkestra_engine::reconcile::{hold_reason::HoldReason, status::gated, verdict::Executed};
use serde_json::{Value, json};

use super::{
    operator::{open_crd_status, operator, pond},
    report::{apply, at, patch},
    world::World,
};

const GATE: &str = "preReconcile: { reconcileGate: { when: [{ field: spec.on, equals: 1 }] } }";

fn world(status: &Value) -> World {
    World::new(&operator(GATE), pond(&json!({ "on": 2 }), status))
}

/// Returns the status while the gate is closed, or `None` if it needs no change.
fn closed(world: &mut World) -> Option<Value> {
    let cycle = world.decide();
    let held = (cycle.held_back.unwrap(), cycle.unmet.as_deref());
    let observed = world.observe();
    let patch = gated(&world.plan, &open_crd_status(), &observed, held, at(0))?;
    apply(world, &patch);
    Some(world.cr["status"].clone())
}

fn words(status: &Value) -> Vec<String> {
    let conditions = status["conditions"].as_array().unwrap();
    let words = conditions.iter().map(|one| {
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        format!("{}={} {}", text("type"), text("status"), text("reason"))
    });
    words.collect()
}

#[test]
fn a_resource_that_no_pass_has_seen_is_not_ready_while_its_gate_is_closed() {
    let mut world = world(&json!({}));
    let status = closed(&mut world).unwrap();
    assert_eq!(
        words(&status),
        [
            "Ready=False GateClosed",
            "Reconciling=True GateClosed",
            "Gated=True GateClosed"
        ]
    );
    assert_eq!(status["observedGeneration"], json!(4));
    let message = status["conditions"][2]["message"].as_str().unwrap();
    assert!(
        message
            .starts_with("no pass runs while `preReconcile.reconcileGate` is closed: spec.crds.")
            && message.ends_with("reconcileGate.when[0] does not hold"),
        "{message}"
    );
    assert_eq!(closed(&mut world), None, "no second write");
    // The next pass removes the condition.
    world.cr["spec"]["on"] = json!(1);
    let passed = patch(&world, &open_crd_status(), &mut Executed::default(), 9).unwrap();
    apply(&mut world, &passed);
    assert_eq!(
        words(&world.cr["status"]),
        ["Ready=True ReconcileSucceeded"]
    );
}

#[test]
fn what_a_pass_said_of_the_present_spec_stays_while_the_gate_is_closed() {
    let stalled = json!({ "type": "Stalled", "status": "True", "reason": "Denied", "message": "no",
        "lastTransitionTime": "2026-03-01T00:00:00Z", "observedGeneration": 4 });
    let mut ready = stalled.clone();
    (ready["type"], ready["status"]) = (json!("Ready"), json!("False"));
    let theirs = json!({ "type": "Theirs", "status": "Unknown" });
    let live = [theirs, ready, stalled];
    let mut world = world(&json!({ "observedGeneration": 4, "conditions": live }));
    let status = closed(&mut world).unwrap();
    assert_eq!(
        status["conditions"].as_array().unwrap()[..3],
        live,
        "{status}"
    );
    assert_eq!(words(&status)[3..], ["Gated=True GateClosed"]);
    // A spec that no pass has processed is neither ready nor stalled.
    world.cr["metadata"]["generation"] = json!(5);
    let status = closed(&mut world).unwrap();
    assert_eq!(
        words(&status),
        [
            "Theirs=Unknown ",
            "Ready=False GateClosed",
            "Gated=True GateClosed",
            "Reconciling=True GateClosed"
        ]
    );
    assert_eq!(status["observedGeneration"], json!(5));
}

#[test]
fn a_suspended_resource_says_who_suspended_it_and_nothing_else_changes() {
    let ready = json!({ "type": "Ready", "status": "True", "reason": "ReconcileSucceeded", "message": "",
        "lastTransitionTime": "2026-03-01T00:00:00Z", "observedGeneration": 4 });
    let mut world = world(&json!({ "observedGeneration": 4, "conditions": [ready] }));
    world.cr["metadata"]["annotations"] = json!({ "orkestra.orkspace.io/suspend": "true" });
    let cycle = world.decide();
    assert_eq!(cycle.held_back, Some(HoldReason::Suspended));
    assert!(cycle.intents.is_empty() && cycle.failures.is_empty());
    let report = |world: &mut World, by: Option<&str>| {
        let observed = world.observe();
        let held = (HoldReason::Suspended, by);
        let patch = gated(&world.plan, &open_crd_status(), &observed, held, at(0))?;
        apply(world, &patch);
        Some(world.cr["status"].clone())
    };
    let status = report(&mut world, Some("`kubectl-annotate`")).unwrap();
    assert_eq!(
        words(&status),
        ["Ready=True ReconcileSucceeded", "Suspended=True Suspended"]
    );
    let message = status["conditions"][1]["message"].as_str().unwrap();
    assert!(message.ends_with("set by `kubectl-annotate`"), "{message}");
    // The manager is read once; the condition keeps it.
    assert_eq!(report(&mut world, None), None, "no second write");
    // Another value of the annotation, and the condition goes with the next pass.
    for value in [json!("false"), json!("True"), json!("")] {
        world.cr["metadata"]["annotations"]["orkestra.orkspace.io/suspend"] = value;
        world.cr["spec"]["on"] = json!(1);
        assert_eq!(world.decide().held_back, None);
    }
    let passed = patch(&world, &open_crd_status(), &mut Executed::default(), 9).unwrap();
    apply(&mut world, &passed);
    assert_eq!(
        words(&world.cr["status"]),
        ["Ready=True ReconcileSucceeded"]
    );
}
