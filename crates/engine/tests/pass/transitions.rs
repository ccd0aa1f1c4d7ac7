//! Guarantee G3 for custom resources: the conditions agree with kstatus in every transition between two outcomes of passes.

use std::sync::LazyLock;

use orkestra_engine::reconcile::{
    differ::HeldField,
    kstatus::Readiness,
    reason::Reason,
    status::status,
    template_data::TemplateData,
    verdict::{Action, Done, Executed},
};
use orkestra_object::value::Path;
use serde_json::{Value, json};

use super::{
    operator::{open_crd_status, operator, pond},
    report::{apply, at, failed},
    world::{World, key},
};
use crate::{
    judge::Judged,
    kstatus::{Kstatus, faults, kstatus},
};

/// The result of a pass, the readiness of the child, and the status that kstatus must compute.
type Outcome = (Executed, Readiness, Kstatus);

fn outcomes() -> Vec<Outcome> {
    let done = Executed {
        done: vec![Done {
            key: key("ConfigMap", "a"),
            action: Action::Unchanged,
        }],
        ..Executed::default()
    };
    let held = HeldField {
        path: Path::parse("data.x").unwrap(),
        manager: "gitops".to_owned(),
    };
    let mut all = vec![
        (done.clone(), Readiness::Current, Kstatus::Current),
        (
            done.clone(),
            Readiness::InProgress("1 of 2".into()),
            Kstatus::InProgress,
        ),
        (
            done.clone(),
            Readiness::Failed("crash".into()),
            Kstatus::Failed,
        ),
        (
            Executed {
                held: vec![(key("ConfigMap", "a"), held)],
                ..done
            },
            Readiness::Current,
            Kstatus::Current,
        ),
    ];
    for reason in Reason::ALL {
        let one = failed(*reason);
        let expected = if reason.is_permanent() {
            Kstatus::Failed
        } else {
            Kstatus::InProgress
        };
        // A permanent failure together with a transient one is retried.
        let mut both = failed(Reason::Unavailable);
        both.failures.extend(one.failures.clone());
        all.push((one, Readiness::Current, expected));
        all.push((both, Readiness::Current, Kstatus::InProgress));
    }
    all
}

/// Reports an outcome in the status of the custom resource.
fn report(world: &mut World, (executed, readiness, _): &Outcome, second: i64) {
    let mut observed = world.observe();
    let record = world.record_of(&key("ConfigMap", "a"));
    observed.children[0].record = record.with_readiness(readiness.clone()).into();
    let patch = status(
        &world.plan,
        &open_crd_status(),
        &observed,
        &TemplateData::default(),
        &mut executed.clone(),
        at(second),
    );
    if let Some(patch) = patch {
        apply(world, &patch);
    }
}

/// Returns a world with a custom resource and its child.
fn world() -> World {
    let plan = operator("onReconcile: { configMaps: [{ name: a }] }");
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.settle();
    world
}

/// Returns the same world with this status.
fn with_status(world: &World, status: Value) -> World {
    let mut world = world.clone();
    world.cr["status"] = status;
    world
}

#[test]
fn the_conditions_keep_to_kstatus_over_every_transition() {
    for (state, truth) in &*TRANSITIONS {
        assert_eq!(kstatus(state), *truth, "{state}");
    }
}

/// Every n-th transition is checked by the genuine programs. 5 has no common factor with the number of states between two
/// outcomes, so all sorts of states are included.
const EVERY: usize = 5;

/// Guarantee G17: Argo CD's health check and kstatus itself, not only the model of it in these tests, report the expected status
/// in every transition, and never report healthy too early.
#[test]
fn health_lua_and_genuine_kstatus_agree_with_the_truth_over_every_transition() {
    let mut judged = Judged::default();
    for (state, truth) in TRANSITIONS.iter().step_by(EVERY) {
        judged.state(state, *truth);
        let mut deleted = state.clone();
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        judged.state(&deleted, Kstatus::Terminating);
        // A definition without a status subresource: each write increments the generation, so no generation is observed.
        let mut bare = state.clone();
        if without_generations(&mut bare) {
            judged.state(&bare, kstatus(&bare));
        }
    }
    assert!(judged.len() >= 1000, "only {} transitions", judged.len());
    judged.finish();
}

/// Removes the observed generations from a state. Returns false if the status is not about the current generation.
fn without_generations(state: &mut Value) -> bool {
    let is_current = state["status"]["observedGeneration"] == state["metadata"]["generation"];
    if let Some(status) = state["status"].as_object_mut() {
        status.remove("observedGeneration");
    }
    let conditions = state.pointer_mut("/status/conditions");
    for condition in conditions
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if let Some(condition) = condition.as_object_mut() {
            condition.remove("observedGeneration");
        }
    }
    is_current
}

static TRANSITIONS: LazyLock<Vec<(Value, Kstatus)>> = LazyLock::new(transitions);

/// Returns every state between two outcomes with the expected status: that of the outcome, or in progress before it is reported.
fn transitions() -> Vec<(Value, Kstatus)> {
    let (outcomes, settled) = (outcomes(), world());
    let mut states = Vec::new();
    for before in &outcomes {
        for after in &outcomes {
            // The initial status that the definition's default sets.
            let mut world = with_status(&settled, json!({ "observedGeneration": -1 }));
            states.push((world.cr.clone(), Kstatus::InProgress));
            for (outcome, second) in [(before, 0), (after, 60)] {
                report(&mut world, outcome, second);
                assert_eq!(faults(&world.cr), [""; 0], "{}", world.cr);
                states.push((world.cr.clone(), outcome.2));
                // A new generation is in progress until a pass has processed it.
                let generation = world.cr["metadata"]["generation"].as_i64().unwrap();
                world.cr["metadata"]["generation"] = json!(generation + 1);
                states.push((world.cr.clone(), Kstatus::InProgress));
                report(&mut world, outcome, second + 30);
                states.push((world.cr.clone(), outcome.2));
            }
        }
    }
    states
}

#[test]
fn whatever_the_status_said_before_the_conditions_are_put_in_order() {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": "Old", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1,
        })
    };
    let theirs = condition("Audited", "False");
    let (outcomes, settled) = (outcomes(), world());
    let statuses = ["True", "False", "Unknown"];
    for ready in statuses {
        for reconciling in statuses {
            for stalled in statuses {
                let old = [
                    condition("Stalled", stalled),
                    theirs.clone(),
                    condition("Reconciling", reconciling),
                    condition("Ready", ready),
                ];
                for outcome in &outcomes {
                    let status = json!({ "conditions": old, "observedGeneration": 1 });
                    let mut world = with_status(&settled, status);
                    report(&mut world, outcome, 0);
                    assert_eq!(faults(&world.cr), [""; 0], "{}", world.cr);
                    assert_eq!(kstatus(&world.cr), outcome.2, "{}", world.cr);
                    let conditions = world.cr["status"]["conditions"].as_array().unwrap();
                    assert!(conditions.contains(&theirs), "{}", world.cr);
                }
            }
        }
    }
}
