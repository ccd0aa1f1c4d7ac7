//! `emit.events` and `runtime.cleanup`: Events that a Katalog declares, and custom resources that their operator deletes.

use orkestra_engine::reconcile::{
    emit::{Emitted, EmittedBefore, emitted},
    reason::Reason,
    status::status,
    template_data::CleanupState,
    verdict::Executed,
};
use orkestra_plan::{Plan, rbac};
use serde_json::{Value, json};

use super::{
    operator::{NAME, open_crd_status, operator, pond},
    report::{apply, at, failed},
    world::{World, words},
};

const EVENTS: &str = r#"
emit:
  events:
    full:
      type: Warning
      reason: "{{ .spec.reason }}"
      message: "{{ .metadata.name }} holds {{ .spec.depth }}"
      when: [{ field: spec.depth, greaterThan: 3 }]
    fine: { reason: Fine, message: all is well, on: success }
    broken: { reason: Broken, message: all is lost, on: failure }
"#;

/// Returns the reasons and messages of the Events that a pass sends, given the memory of the previous pass.
fn sent(
    world: &World,
    executed: &mut Executed,
    before: &mut EmittedBefore,
) -> Vec<(String, String)> {
    let cycle = world.decide();
    let observed = world.observe();
    let (events, held) = emitted(
        &world.plan,
        (&observed, &cycle.sources),
        executed,
        before,
        at(0),
    );
    *before = held;
    let text = |event: Emitted| (event.reason, event.message);
    events.into_iter().map(text).collect()
}

fn event(reason: &str, message: &str) -> (String, String) {
    (reason.to_owned(), message.to_owned())
}

#[test]
fn an_event_is_sent_when_its_state_begins_and_not_again() {
    let mut world = World::new(
        &operator(EVENTS),
        pond(&json!({ "depth": 5, "reason": "Full" }), &json!({})),
    );
    let mut before = EmittedBefore::default();
    let mut next = |world: &World| sent(world, &mut Executed::default(), &mut before);
    let full = event("Full", &format!("{NAME} holds 5"));
    assert_eq!(next(&world), [event("Fine", "all is well"), full]);
    assert_eq!(next(&world), []);
    // A different text is a different Event.
    world.cr["spec"]["depth"] = json!(6);
    assert_eq!(next(&world).len(), 1);
    // The state ends, and begins again.
    world.cr["spec"]["depth"] = json!(1);
    assert_eq!(next(&world), []);
    world.cr["spec"]["depth"] = json!(6);
    assert_eq!(next(&world).len(), 1);
}

#[test]
fn failures_and_successes_have_their_own_events() {
    let world = World::new(&operator(EVENTS), pond(&json!({ "depth": 1 }), &json!({})));
    let mut before = EmittedBefore::default();
    let wrong = || failed(Reason::Invalid);
    assert_eq!(
        sent(&world, &mut wrong(), &mut before),
        [event("Broken", "all is lost")]
    );
    assert_eq!(sent(&world, &mut wrong(), &mut before), []);
    assert_eq!(
        sent(&world, &mut Executed::default(), &mut before),
        [event("Fine", "all is well")]
    );
    assert_eq!(
        sent(&world, &mut wrong(), &mut before),
        [event("Broken", "all is lost")]
    );
}

#[test]
fn an_event_that_cannot_be_rendered_is_reported_and_fails_nothing() {
    let cr = pond(&json!({ "depth": 5, "reason": "not one word" }), &json!({}));
    let world = World::new(&operator(EVENTS), cr);
    let mut executed = Executed::default();
    let events = sent(&world, &mut executed, &mut EmittedBefore::default());
    assert_eq!(events, [event("Fine", "all is well")]);
    assert!(executed.failures.is_empty());
    let doubts: Vec<&str> = executed
        .doubts
        .iter()
        .map(|doubt| &*doubt.message)
        .collect();
    assert_eq!(doubts, ["`{{ .spec.reason }}` must return one word"]);
}

const CLEANUP: &str = r"
runtime:
  cleanup:
    when: [{ field: spec.done, equals: true }]
    deleteAfter: 10m
onReconcile: { configMaps: [{ name: a, data: { k: v } }] }
";

/// Runs a pass at this second, writes its status, and returns the state of the cleanup.
fn passed(world: &mut World, second: i64) -> Option<CleanupState> {
    world.now = at(second);
    let cycle = world.decide();
    let observed = world.observe();
    let mut executed = Executed::default();
    let crd_status = open_crd_status();
    let patch = status(
        &world.plan,
        &crd_status,
        &observed,
        &cycle.sources,
        &mut executed,
        at(second),
    );
    if let Some(patch) = patch {
        apply(world, &patch);
    }
    cycle.sources.cleanup
}

fn pending(world: &World) -> Option<&Value> {
    let conditions = world.cr["status"]["conditions"].as_array().unwrap();
    conditions
        .iter()
        .find(|one| one["type"] == "CleanupPending")
}

#[test]
fn a_resource_is_deleted_when_its_conditions_have_held_for_long_enough() {
    let mut world = World::new(
        &operator(CLEANUP),
        pond(&json!({ "done": false }), &json!({})),
    );
    assert_eq!(passed(&mut world, 0), None);
    assert_eq!(pending(&world), None);
    world.cr["spec"]["done"] = json!(true);
    assert_eq!(
        passed(&mut world, 100),
        Some(CleanupState::Pending(at(700)))
    );
    assert_eq!(
        pending(&world).unwrap()["reason"],
        json!("CleanupScheduled")
    );
    assert_eq!(
        passed(&mut world, 699),
        Some(CleanupState::Pending(at(700)))
    );
    assert_eq!(world.decide().wake, Some(at(700)));
    // If the conditions do not hold in between, the time starts again.
    world.cr["spec"]["done"] = json!(false);
    assert_eq!(passed(&mut world, 699), None);
    assert_eq!(pending(&world), None);
    world.cr["spec"]["done"] = json!(true);
    assert_eq!(
        passed(&mut world, 800),
        Some(CleanupState::Pending(at(1400)))
    );
    world.now = at(1400);
    let cycle = world.decide();
    assert_eq!(cycle.sources.cleanup, Some(CleanupState::Due));
    assert_eq!(words(&cycle), Vec::<String>::new(), "no other intent");
}

#[test]
fn a_protected_resource_and_one_that_others_bring_back_are_not_deleted() {
    let marks = [
        json!({ "labels": { "orkestra.io/deletion-protection": "true" } }),
        json!({ "annotations": { "argocd.argoproj.io/tracking-id": "a:b/c:d/e" } }),
        json!({ "labels": { "kustomize.toolkit.fluxcd.io/name": "apps" } }),
        json!({ "ownerReferences": [{ "kind": "Lake", "name": "l", "controller": true }] }),
    ];
    for mark in marks {
        let mut cr = pond(&json!({ "done": true }), &json!({}));
        for (field, value) in mark.as_object().unwrap() {
            cr["metadata"][field] = value.clone();
        }
        let mut world = World::new(&operator(CLEANUP), cr);
        for second in [0, 6000] {
            let stands = passed(&mut world, second);
            assert!(
                matches!(stands, Some(CleanupState::Refused(_))),
                "{mark} {stands:?}"
            );
            assert_eq!(pending(&world).unwrap()["reason"], json!("CleanupRefused"));
        }
        assert_eq!(words(&world.decide()).len(), 1, "the child is applied");
    }
}

#[test]
fn a_cleanup_needs_the_permission_to_delete() {
    let rules = |declared| {
        let plan = Plan {
            katalog: operator(declared).katalog.clone(),
            operators: vec![operator(declared)],
            stopped: Vec::new(),
            deletion_policy: <_>::default(),
            security: <_>::default(),
            conversions: <_>::default(),
            definitions: Box::default(),
        };
        let rules = rbac::rules(&plan);
        let mut of_ponds = rules.iter().filter(|rule| rule.resources == ["ponds"]);
        of_ponds.any(|rule| rule.verbs.iter().any(|verb| verb == "delete"))
    };
    assert!(rules(CLEANUP));
    assert!(!rules(EVENTS));
}
