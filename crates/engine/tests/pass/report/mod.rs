//! The status after a pass: conditions, and fields with the values at the start of the pass.

mod reasons;

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    crd_status::CrdStatus,
    differ::HeldField,
    reason::Reason,
    status::{StatusPatch, status},
    step::Failure,
    template_data::TemplateData,
    verdict::Executed,
};
use orkestra_object::value::Path;
use orkestra_plan::OperatorPlan;
use serde_json::{Value, json};

use super::{
    operator::{open_crd_status, operator, pond},
    world::{World, key},
};

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::new(1_770_000_000 + second, 0).unwrap()
}

/// Returns a result with a failure of this reason.
pub(crate) fn failed(reason: Reason) -> Executed {
    Executed {
        failures: vec![Failure {
            reason,
            at: "ConfigMap east/a".to_owned(),
            message: "why".to_owned(),
        }],
        ..Executed::default()
    }
}

/// Returns the status patch after a pass.
pub(crate) fn patch(
    world: &World,
    crd_status: &CrdStatus,
    executed: &mut Executed,
    second: i64,
) -> Option<StatusPatch> {
    let (observed, sources) = (world.observe(), TemplateData::default());
    status(
        &world.plan,
        crd_status,
        &observed,
        &sources,
        executed,
        at(second),
    )
}

/// Patches the custom resource like the API server: a JSON merge patch, after which floats without a fraction are integers.
pub(crate) fn apply(world: &mut World, patch: &StatusPatch) {
    let body = patch.body.to_json();
    assert_eq!(
        body["metadata"]["resourceVersion"],
        world.cr["metadata"]["resourceVersion"]
    );
    merge(&mut world.cr["status"], &body["status"]);
    let version: u64 = world.cr["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    world.cr["metadata"]["resourceVersion"] = json!((version + 1).to_string());
}

/// Source: RFC 7396.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = whole(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            target.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut target[name], value);
        }
    }
}

/// Go's decoder does not distinguish `3.0` and `3`.
fn whole(value: &Value) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "checked to be an integer")]
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < 1e15 => {
                json!(float as i64)
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(whole).collect(),
        Value::Object(fields) => Value::Object(
            fields
                .iter()
                .map(|(key, value)| (key.clone(), whole(value)))
                .collect(),
        ),
        _ => value.clone(),
    }
}

/// Reports until the status needs no change; at most one patch may be needed.
pub(crate) fn report(
    world: &mut World,
    crd_status: &CrdStatus,
    executed: &mut Executed,
    second: i64,
) -> Value {
    if let Some(first) = patch(world, crd_status, executed, second) {
        apply(world, &first);
        // A field that failed was added to the failures; the next pass starts without them.
        let again = patch(world, crd_status, &mut executed.clone(), second + 60);
        assert_eq!(again.map(|patch| patch.body.to_json()), None);
    }
    world.cr["status"].clone()
}

fn plain() -> World {
    let plan = operator("onReconcile: { configMaps: [{ name: a }] }");
    World::new(&plan, pond(&json!({}), &json!({})))
}

/// Returns the condition types and their status, sorted.
fn types(status: &Value) -> Vec<String> {
    let conditions = status["conditions"].as_array().unwrap();
    let mut types: Vec<String> = conditions
        .iter()
        .map(|one| format!("{}={} {}", one["type"], one["status"], one["reason"]).replace('"', ""))
        .collect();
    types.sort();
    types
}

#[test]
fn a_pass_that_went_well_is_ready_and_nothing_else() {
    let found = report(
        &mut plain(),
        &open_crd_status(),
        &mut Executed::default(),
        0,
    );
    assert_eq!(types(&found), ["Ready=True ReconcileSucceeded"]);
    assert_eq!(found["observedGeneration"], 4);
    assert_eq!(found["conditions"][0]["observedGeneration"], 4);
    assert_eq!(
        found["conditions"][0]["lastTransitionTime"],
        "2026-02-02T02:40:00Z"
    );
}

#[test]
fn a_failure_is_reported_with_its_place_and_every_other() {
    let mut executed = failed(Reason::InvalidName);
    executed.failures.push(Failure {
        reason: Reason::WrongType,
        at: "there".to_owned(),
        message: "else".to_owned(),
    });
    let found = report(&mut plain(), &open_crd_status(), &mut executed, 0);
    // `Ready` names the first and counts the others; `Stalled` names all.
    let message = |at: usize| found["conditions"][at]["message"].clone();
    assert_eq!(message(0), "ConfigMap east/a: why; and 1 more");
    assert_eq!(message(1), "ConfigMap east/a: why; there: else");
}

#[test]
fn a_long_message_is_cut() {
    let mut executed = failed(Reason::Denied);
    executed.failures[0].message = "鯉".repeat(20_000);
    let found = report(&mut plain(), &open_crd_status(), &mut executed, 0);
    let message = found["conditions"][0]["message"].as_str().unwrap();
    assert!(message.len() <= 32_768 && message.ends_with("鯉..."));
}

#[test]
fn a_field_conflict_is_there_while_somebody_holds_a_field() {
    let mut world = plain();
    let held = HeldField {
        path: Path::parse("data.x").unwrap(),
        manager: "gitops".to_owned(),
    };
    let mut executed = Executed {
        held: vec![(key("ConfigMap", "a"), held)],
        ..Executed::default()
    };
    let found = report(&mut world, &open_crd_status(), &mut executed, 0);
    assert_eq!(
        types(&found),
        [
            "FieldConflict=True FieldConflict",
            "Ready=True ReconcileSucceeded"
        ]
    );
    assert_eq!(
        found["conditions"][1]["message"],
        "ConfigMap east/a: data.x is owned by field manager `gitops`"
    );
    let found = report(&mut world, &open_crd_status(), &mut Executed::default(), 9);
    assert_eq!(types(&found), ["Ready=True ReconcileSucceeded"]);
}

#[test]
fn the_time_moves_when_the_status_does_and_not_with_reason_or_message() {
    let mut world = plain();
    let mut report = |executed: &mut Executed, second| {
        let found = report(&mut world, &open_crd_status(), executed, second);
        found["conditions"][0]["lastTransitionTime"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let first = report(&mut failed(Reason::Invalid), 0);
    assert_eq!(report(&mut failed(Reason::Forbidden), 30), first);
    let ready = report(&mut Executed::default(), 60);
    assert_eq!(ready, "2026-02-02T02:41:00Z");
    assert_eq!(report(&mut Executed::default(), 90), ready);
}

#[test]
fn conditions_of_others_stay_whatever_they_look_like() {
    let theirs = [
        json!({ "type": "Audited", "status": "True", "auditor": "moss", "when": 3 }),
        json!({ "type": "Odd", "status": true }),
        json!({ "kind": "none of ours" }),
        json!("text"),
    ];
    let mut world = plain();
    world.cr["status"] = json!({ "conditions": theirs, "phase": "theirs" });
    let found = report(&mut world, &open_crd_status(), &mut Executed::default(), 0);
    let conditions = found["conditions"].as_array().unwrap();
    assert_eq!(conditions[..4], theirs);
    assert_eq!(conditions[4]["type"], "Ready");
    assert_eq!(found["phase"], "theirs");
    let since = conditions[4]["lastTransitionTime"].clone();
    let mut failing = failed(Reason::Invalid);
    report(&mut world, &open_crd_status(), &mut failing, 5);
    let found = report(&mut world, &open_crd_status(), &mut Executed::default(), 7);
    assert_eq!(found["conditions"].as_array().unwrap()[..4], theirs);
    assert_ne!(found["conditions"][4]["lastTransitionTime"], since);
}

#[test]
fn without_the_subresource_there_is_no_observed_generation() {
    let crd_status = CrdStatus {
        has_status: false,
        ..open_crd_status()
    };
    let mut world = plain();
    let first = patch(&world, &crd_status, &mut Executed::default(), 0).unwrap();
    assert!(!first.subresource);
    apply(&mut world, &first);
    assert_eq!(world.cr["status"].get("observedGeneration"), None);
    assert_eq!(
        world.cr["status"]["conditions"][0].get("observedGeneration"),
        None
    );
    // Each write of the status increments the generation.
    world.cr["metadata"]["generation"] = json!(5);
    assert_eq!(
        patch(&world, &crd_status, &mut Executed::default(), 60),
        None
    );
}

#[test]
fn with_the_subresource_the_patch_goes_there_and_over_the_state_it_was_made_for() {
    let found = patch(&plain(), &open_crd_status(), &mut Executed::default(), 0).unwrap();
    assert!(found.subresource);
    assert_eq!(
        found.body.to_json()["metadata"],
        json!({ "resourceVersion": "70" })
    );
}

#[test]
fn a_new_generation_is_observed_with_one_patch() {
    let mut world = plain();
    report(&mut world, &open_crd_status(), &mut Executed::default(), 0);
    world.cr["metadata"]["generation"] = json!(5);
    let found = report(&mut world, &open_crd_status(), &mut Executed::default(), 60);
    assert_eq!(
        (
            &found["observedGeneration"],
            &found["conditions"][0]["observedGeneration"]
        ),
        (&json!(5), &json!(5))
    );
    assert_eq!(
        found["conditions"][0]["lastTransitionTime"],
        "2026-02-02T02:40:00Z"
    );
}

#[test]
fn conditions_can_be_turned_off() {
    let plan: std::sync::Arc<OperatorPlan> = operator("status: { conditions: false }");
    let world = World::new(&plan, pond(&json!({}), &json!({})));
    assert_eq!(
        patch(&world, &open_crd_status(), &mut failed(Reason::Invalid), 0),
        None
    );
}
