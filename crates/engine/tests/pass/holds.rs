//! Gates before a pass, requeues, and the conditions of the status.

use std::time::Duration;

use orkestra_engine::reconcile::{hold_reason::HoldReason, reason::Reason, verdict::Executed};
use orkestra_plan::OperatorPlan;
use serde_json::{Value, json};

use super::{
    operator::{crd_status, open_crd_status, operator, pond},
    report::{apply, failed, patch},
    world::{World, words},
};

fn world(declared: &str, spec: &Value, status: &Value) -> World {
    World::new(&operator(declared), pond(spec, status))
}

#[test]
fn a_gated_resource_is_left_as_it_is() {
    let children = "onReconcile: { configMaps: [{ name: a, data: { on: '{{ .spec.on }}' } }] }";
    for (name, held) in [
        ("enqueueGate", HoldReason::NotQueued),
        ("reconcileGate", HoldReason::Gated),
        ("gate", HoldReason::Gated),
    ] {
        let declared = format!(
            "preReconcile: {{ {name}: {{ when: [{{ field: spec.on, equals: 1 }}] }} }}\n{children}"
        );
        let mut world = world(&declared, &json!({"on": 1}), &json!({}));
        let open = world.settle();
        assert_eq!(
            (open.cycle.held_back, words(&open.cycle)),
            (None, vec!["apply ConfigMap east/a".to_owned()])
        );
        world.cr["spec"]["on"] = json!(2);
        let cycle = world.decide();
        assert_eq!(cycle.held_back, Some(held), "{name}");
        assert_eq!(words(&cycle), Vec::<String>::new());
        assert_eq!(cycle.failures, []);
        assert_eq!(cycle.inventory, *world.observe().cr.inventory);
    }
}

#[test]
fn a_gate_that_asks_for_the_time_is_looked_at_again() {
    let declared = "preReconcile: { reconcileGate: { or: [{ time: { after: '02:00' } }] } }";
    let mut world = world(declared, &json!({}), &json!({}));
    world.now = "2026-03-02T01:00:00Z".parse().unwrap();
    let cycle = world.decide();
    assert_eq!(cycle.held_back, Some(HoldReason::Gated));
    assert_eq!(cycle.wake, Some("2026-03-02T02:00:00Z".parse().unwrap()));
}

#[test]
fn a_gate_that_fails_holds_nothing_back_in_silence() {
    let declared =
        "preReconcile: { enqueueGate: { when: [{ field: spec.a, regex: '{{ .spec.re }}' }] } }
onReconcile: { configMaps: [{ name: a }] }";
    let mut world = world(declared, &json!({"re": ".*"}), &json!({}));
    world.settle();
    world.cr["spec"]["re"] = json!("(");
    let cycle = world.decide();
    assert_eq!(cycle.held_back, None);
    assert_eq!(cycle.failures[0].reason, Reason::WrongType);
    assert_eq!(words(&cycle), Vec::<String>::new());
    assert_eq!(cycle.inventory, *world.observe().cr.inventory);
}

#[test]
fn a_closed_box_closes_each_block() {
    let children =
        "onReconcile: { configMaps: [{ name: a }] }\nonCreate: { secrets: [{ name: b }] }";
    for (gate, closed) in [
        (
            "when: [{ field: spec.on, equals: 1 }]",
            "delete ConfigMap east/a",
        ),
        (
            "or: [{ field: spec.on, equals: 1 }]",
            "delete ConfigMap east/a",
        ),
        (
            "when: [{ field: status.on, equals: 1 }]",
            "keep ConfigMap east/a",
        ),
    ] {
        let on = json!({"on": 1});
        let mut world = world(&format!("{gate}\n{children}"), &on, &on);
        world.settle();
        (world.cr["spec"]["on"], world.cr["status"]["on"]) = (json!(2), json!(2));
        let cycle = world.decide();
        assert_eq!(cycle.failures, []);
        let words = words(&cycle);
        assert!(words.contains(&closed.to_owned()), "{gate}: {words:?}");
        assert!(
            words.contains(&"keep Secret east/b".to_owned()),
            "{gate}: {words:?}"
        );
    }
}

fn requeue(declared: &str, spec: &Value) -> (Option<Duration>, Vec<Reason>) {
    let declared = format!("reconciler: {{ requeue: {{ {declared} }} }}");
    let cycle = world(&declared, spec, &json!({})).decide();
    assert_eq!(cycle.failures, []);
    let doubts = cycle.doubts.iter().map(|doubt| doubt.reason);
    (cycle.requeue, doubts.collect())
}

#[test]
fn a_pass_follows_by_itself_where_that_is_declared() {
    let spec = json!({"after": "90s", "bad": "soon", "on": 1});
    let open = |declared: &str| requeue(declared, &spec);
    assert_eq!(open("after: 5m"), (Some(Duration::from_mins(5)), vec![]));
    assert_eq!(
        open("after: '{{ .spec.after }}'"),
        (Some(Duration::from_secs(90)), vec![])
    );
    assert_eq!(open("after: 1ms"), (Some(Duration::from_secs(1)), vec![]));
    for none in ["after: 0s", "after: ''", "after: '{{ .spec.gone }}'"] {
        assert_eq!(open(none), (None, vec![]), "{none}");
    }
    assert_eq!(
        open("after: '{{ .spec.bad }}'"),
        (None, vec![Reason::NotCompared])
    );
    assert_eq!(
        open("after: 5m, when: [{ field: spec.on, equals: 2 }]"),
        (None, vec![])
    );
    assert_eq!(
        open("after: 5m, or: [{ field: spec.on, equals: 2 }, { field: spec.on, equals: 1 }]").0,
        Some(Duration::from_mins(5))
    );
}

#[test]
fn of_several_rules_the_first_that_holds_says_when_a_pass_follows() {
    let of = |on: i64, text: &str| {
        let rules = "[{ when: [{ field: spec.on, equals: 1 }], after: '{{ .spec.after }}' }, { after: 1m }, { after: 2m }]";
        let declared = format!("reconciler: {{ requeue: {rules} }}");
        let spec = json!({ "on": on, "after": text });
        let cycle = world(&declared, &spec, &json!({})).decide();
        (cycle.requeue.map(|time| time.as_secs()), cycle.doubts.len())
    };
    assert_eq!(of(1, "5m"), (Some(300), 0));
    assert_eq!(of(2, "5m"), (Some(60), 0));
    // The rule that holds decides, even if it asks for no requeue.
    assert_eq!(of(1, "0s"), (None, 0));
    assert_eq!(of(1, "soon"), (None, 1));
}

/// Returns the status after a pass with the result `executed`.
fn reported(declared: &str, spec: &Value, status: &Value, executed: &mut Executed) -> Value {
    let mut world = world(declared, spec, status);
    if let Some(patch) = patch(&world, &open_crd_status(), executed, 0) {
        apply(&mut world, &patch);
    }
    world.cr["status"].clone()
}

#[test]
fn a_field_is_cleared_when_its_gate_closes_if_that_is_declared() {
    let schema = json!({"type": "object", "properties": {
        "text": {"type": "string"}, "word": {"type": "string", "enum": ["a", "b"]}, "number": {"type": "integer"},
        "kept": {"type": "string"},
    }});
    let field = |path: &str, value: &str, more: &str| {
        format!(
            "{{ path: {path}, value: {value}, {more} when: [{{ field: spec.on, equals: 1 }}] }}"
        )
    };
    let clear = "clearOnFalse: true,";
    let fields = [
        field("text", "x", clear),
        field("word", "a", clear),
        field("number", "7", clear),
        field("kept", "x", ""),
    ];
    let declared = format!(
        "status: {{ conditions: false, fields: [{}] }}",
        fields.join(", ")
    );
    let mut world = world(&declared, &json!({"on": 1}), &json!({}));
    let full = patch(&world, &crd_status(&schema), &mut Executed::default(), 0).unwrap();
    apply(&mut world, &full);
    assert_eq!(
        world.cr["status"],
        json!({"text": "x", "word": "a", "number": 7, "kept": "x"})
    );
    world.cr["spec"]["on"] = json!(2);
    let cleared = patch(&world, &crd_status(&schema), &mut failed(Reason::Denied), 1).unwrap();
    apply(&mut world, &cleared);
    assert_eq!(world.cr["status"], json!({"text": "", "kept": "x"}));
    assert_eq!(
        patch(&world, &crd_status(&schema), &mut Executed::default(), 2),
        None
    );
}

const OWN: &str = "status:
  conditions:
    - { type: Deep, when: [{ field: spec.depth, greaterThan: 3 }], message: '{{ .spec.depth }} m' }
    - { type: water.example/Tested, status: '{{ .spec.tested }}' }
    - { type: Seen, status: 'true', reason: '{{ .spec.why }}', when: [{ field: spec.look, exists: true }] }";

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    let all = status["conditions"].as_array().unwrap();
    all.iter().find(|one| one["type"] == name)
}

fn short(status: &Value, name: &str) -> String {
    let found = condition(status, name).unwrap_or(&Value::Null);
    format!(
        "{} {} {}",
        found["status"], found["reason"], found["message"]
    )
    .replace('"', "")
}

#[test]
fn conditions_of_ones_own_stand_beside_ours_and_their_time_moves_with_their_status() {
    let theirs = json!({"type": "Audited", "status": "True", "by": "moss"});
    let before = json!({"conditions": [theirs]});
    let first = reported(OWN, &json!({"depth": 7}), &before, &mut Executed::default());
    assert_eq!(first["conditions"][0], theirs);
    assert_eq!(short(&first, "Deep"), "True Deep 7 m");
    assert_eq!(short(&first, "water.example/Tested"), "Unknown Unknown ");
    assert_eq!(condition(&first, "Seen"), None);
    assert_eq!(
        short(&first, "Ready"),
        "True ReconcileSucceeded everything is as declared"
    );
    assert_eq!(condition(&first, "Deep").unwrap()["observedGeneration"], 4);

    let look = json!({"depth": 9, "tested": true, "look": "x", "why": "Measured"});
    let mut world = world(OWN, &look, &first);
    let patched = patch(&world, &open_crd_status(), &mut failed(Reason::Denied), 90).unwrap();
    apply(&mut world, &patched);
    let second = world.cr["status"].clone();
    assert_eq!(short(&second, "Deep"), "True Deep 9 m");
    assert_eq!(short(&second, "water.example/Tested"), "True Tested ");
    assert_eq!(short(&second, "Seen"), "True Measured ");
    let time =
        |status: &Value, name: &str| condition(status, name).unwrap()["lastTransitionTime"].clone();
    assert_eq!(time(&first, "Deep"), time(&second, "Deep"));
    assert_ne!(
        time(&first, "water.example/Tested"),
        time(&second, "water.example/Tested")
    );
    assert_eq!(
        patch(&world, &open_crd_status(), &mut failed(Reason::Denied), 99),
        None
    );

    // A condition whose gate is closed stays, and a condition without a status is false.
    let third = reported(
        OWN,
        &json!({"depth": 1, "tested": "no"}),
        &second,
        &mut Executed::default(),
    );
    assert_eq!(short(&third, "Seen"), "True Measured ");
    assert_eq!(short(&third, "Deep"), "False NotDeep 1 m");
    assert_eq!(short(&third, "water.example/Tested"), "True Tested ");
    assert!(
        short(&third, "Ready").starts_with("False WrongType"),
        "{third}"
    );
}

#[test]
fn ready_waits_for_what_the_katalog_asks() {
    let declared =
        "status: { readyWhen: [{ field: spec.a, exists: true }, { field: spec.depth, min: 3 }] }";
    let ready = |spec: Value| {
        let status = reported(declared, &spec, &json!({}), &mut Executed::default());
        (
            short(&status, "Ready"),
            condition(&status, "Reconciling").is_some(),
        )
    };
    let path = "spec.crds.pond.operatorBox.status.readyWhen[1]";
    assert_eq!(
        ready(json!({"a": 1})),
        (format!("False ConditionsNotMet waiting for {path}"), true)
    );
    let (open, reconciling) = ready(json!({"a": 1, "depth": 3}));
    assert_eq!(
        (open.as_str(), reconciling),
        ("True ReconcileSucceeded everything is as declared", false)
    );
}

/// The corrected sample of the founding documents, with Jobs in their full form.
fn machine() -> std::sync::Arc<OperatorPlan> {
    let job = |step: &str, when: &str| {
        format!(
            "    - {{ apiVersion: batch/v1, kind: Job, metadata: {{ name: '{{{{ .metadata.name }}}}-{step}' }}, spec: {{ template: {{}} }}, when: [{when}] }}\n"
        )
    };
    let done = "{ field: '{{ jobSucceeded .children.job }}', equals: 'true' }";
    let phase = |of: &str| format!("{{ field: status.phase, equals: '{of}' }}");
    let says =
        |of: &str, when: &str| format!("    - {{ path: phase, value: '{of}', when: [{when}] }}\n");
    let is = |suffix: &str| {
        format!("{{ field: '{{{{ name .children.job }}}}', hasSuffix: '-{suffix}' }}")
    };
    let running = "{ field: status.phase, notEquals: Succeeded }";
    operator(&format!(
        "onCreate:\n  custom:\n{}{}{}status:\n  fields:\n{}{}{}{}",
        job("build", "{ field: status.phase, operator: notExists }"),
        job("test", &format!("{}, {done}", phase("Running/build"))),
        job("notify", &format!("{}, {done}", phase("Running/test"))),
        says("Running/build", &is("build")),
        says("Running/test", &is("test")),
        says("Running/notify", &format!("{}, {running}", is("notify"))),
        says("Succeeded", &format!("{}, {done}", phase("Running/notify"))),
    ))
}

#[test]
fn the_state_machine_goes_one_step_a_pass() {
    let mut world = World::new(&machine(), pond(&json!({}), &json!({})));
    let mut phases = Vec::new();
    let mut second = 0;
    for _ in 0..30 {
        second += 1;
        let pass = world.pass();
        assert_eq!(pass.cycle.failures, []);
        let before = world.cr["status"]["phase"].clone();
        if let Some(patch) = patch(&world, &open_crd_status(), &mut Executed::default(), second) {
            apply(&mut world, &patch);
        }
        let after = world.cr["status"]["phase"].clone();
        if before != after {
            phases.push(after.as_str().unwrap().to_owned());
            continue;
        }
        // Nothing is left to do until the Job of this step has ended.
        for stored in world.objects.values_mut() {
            stored.set_status(
                &json!({"succeeded": 1, "conditions": [{"type": "Complete", "status": "True"}]}),
            );
        }
    }
    assert_eq!(
        phases,
        [
            "Running/build",
            "Running/test",
            "Running/notify",
            "Succeeded"
        ]
    );
    assert_eq!(world.objects.len(), 3);
}
