//! Calls in rules and in the gates before a pass: the time of each call, the readers of its response, and the effect of a
//! failure.

mod places;

use orkestra_engine::reconcile::{
    calls::CallRequest, hold_reason::HoldReason, reason::Reason, sources::Answer,
};
use orkestra_plan::definitions::Schemas;
use serde_json::{Value, json};

use super::{
    calls::{bad, decide, good},
    operator::{of_document, pond},
    world::{World, key, rendered, words},
};

/// Returns a world with a Pond with `spec`. Its entry has these lines in addition to `apiTypes`.
fn world(entry: &str, spec: &Value) -> World {
    world_with(entry, "", spec)
}

fn world_with(entry: &str, motif: &str, spec: &Value) -> World {
    let lines = entry.lines().map(|line| format!("      {line}"));
    let entry = lines.collect::<Vec<_>>().join("\n");
    let text = format!(
        "apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    pond:
      apiTypes: {{ group: water.example, version: v1, kind: Pond, plural: ponds }}
{entry}
{motif}"
    );
    let plan = of_document(&text, &Schemas::default());
    World::new(&plan, pond(spec, &json!({})))
}

fn names(asked: &[CallRequest]) -> Vec<&str> {
    asked.iter().map(|request| &*request.name).collect()
}

fn url<'a>(asked: &'a [CallRequest], name: &str) -> &'a str {
    &asked.iter().find(|one| &*one.name == name).unwrap().url
}

/// One call in each place. Each call sends the responses of the previous ones.
const EVERYWHERE: &str = "
mutation:
  external: [{ name: fill, url: 'https://fill.example/{{ .external.second.body }}/{{ .spec.size }}' }]
  rules: [{ field: spec.size, default: '{{ .external.fill.size }}' }, { field: spec.first, override: '{{ .external.before.body }}' }]
validation:
  external: [{ name: judge, url: 'https://judge.example/{{ .external.fill.size }}/{{ .spec.size }}' }]
  rules: [{ field: external.judge.allowed, equals: true, message: 'the judge says {{ .external.judge.why }}' }]
operatorBox:
  preReconcile:
    external: [{ name: before, url: 'https://before.example/{{ .spec.name }}' }]
    enqueueGate:
      external: [{ name: first, url: 'https://first.example/{{ .external.before.body }}' }]
      when: [{ field: external.first.status, equals: 200 }]
    reconcileGate:
      external: [{ name: second, url: 'https://second.example/{{ .external.first.body }}' }]
      when: [{ field: external.second.body, notEquals: closed }]
  onReconcile:
    external: [{ name: work, url: 'https://work.example/{{ .external.judge.status }}' }]
    configMaps: [{ name: a, data: { of: '{{ .spec.first }} {{ .spec.size }} {{ .external.second.body }} {{ .external.work.status }}' } }]
";

fn answer(request: &CallRequest) -> Answer {
    match &*request.name {
        "fill" => good(200, r#"{"size": 7}"#),
        "judge" => good(200, r#"{"allowed": true}"#),
        name => good(200, name),
    }
}

#[test]
fn calls_are_made_in_the_order_of_the_pass_and_each_answer_is_seen_from_then_on() {
    let world = world(EVERYWHERE, &json!({ "name": "north" }));
    let (cycle, asked) = decide(&world, answer);
    assert_eq!(cycle.failures, []);
    assert_eq!(
        names(&asked),
        ["before", "first", "second", "fill", "judge", "work"]
    );
    for (name, wanted) in [
        ("before", "https://before.example/north"),
        ("first", "https://first.example/before"),
        ("second", "https://second.example/first"),
        ("fill", "https://fill.example/second/"),
        ("judge", "https://judge.example/7/7"),
        ("work", "https://work.example/200"),
    ] {
        assert_eq!(url(&asked, name), wanted);
    }
    let map = rendered(&cycle, &key("ConfigMap", "a")).object.to_json();
    assert_eq!(map["data"]["of"], "before 7 second 200");
}

#[test]
fn a_closed_gate_lets_no_later_call_be_made() {
    let mut world = world(EVERYWHERE, &json!({ "name": "north" }));
    let (_, asked) = decide(&world, answer);
    assert_eq!(asked.len(), 6);
    world.remember("ConfigMap");
    for (closed, held, made) in [
        ("first", HoldReason::NotQueued, vec!["before", "first"]),
        (
            "second",
            HoldReason::Gated,
            vec!["before", "first", "second"],
        ),
    ] {
        let reported = |request: &CallRequest| match &*request.name {
            name if name == closed => good(202, "closed"),
            _ => answer(request),
        };
        let (cycle, asked) = decide(&world, reported);
        assert_eq!((cycle.held_back, names(&asked)), (Some(held), made));
        assert_eq!((words(&cycle), cycle.failures), (vec![], vec![]));
        assert_eq!(cycle.inventory, *world.cr().inventory);
    }
}

#[test]
fn a_call_that_fails_touches_no_child_wherever_it_is() {
    let mut world = world(EVERYWHERE, &json!({ "name": "north" }));
    world.remember("ConfigMap");
    for (failing, made, place) in [
        ("before", 1, "operatorBox.preReconcile.external[0]"),
        (
            "first",
            2,
            "operatorBox.preReconcile.enqueueGate.external[0]",
        ),
        (
            "second",
            3,
            "operatorBox.preReconcile.reconcileGate.external[0]",
        ),
        ("fill", 4, "mutation.external[0]"),
        ("judge", 5, "validation.external[0]"),
        ("work", 6, "operatorBox.onReconcile.external[0]"),
    ] {
        for (permanent, reason) in [
            (false, Reason::ExternalCallFailed),
            (true, Reason::ExternalCallRefused),
        ] {
            let reported = |request: &CallRequest| match &*request.name {
                name if name == failing => bad(Some(503), "it is down", permanent),
                _ => answer(request),
            };
            let (cycle, asked) = decide(&world, reported);
            assert_eq!((asked.len(), cycle.held_back), (made, None), "{failing}");
            assert_eq!(
                (words(&cycle), &cycle.inventory),
                (vec![], &*world.cr().inventory)
            );
            let [failure] = &cycle.failures[..] else {
                panic!("{:?}", cycle.failures)
            };
            assert_eq!(failure.reason, reason);
            let message = format!("the call `{failing}` failed: it is down");
            assert_eq!(failure.message, message);
            assert!(failure.at.ends_with(place), "{}", failure.at);
        }
    }
}

#[test]
fn a_rule_refuses_with_what_the_server_answers_and_nothing_is_asked_after_it() {
    let world = world(EVERYWHERE, &json!({ "name": "north", "size": 3 }));
    let reported = |request: &CallRequest| match &*request.name {
        "judge" => good(200, r#"{"allowed": false, "why": "no quota"}"#),
        _ => answer(request),
    };
    let (cycle, asked) = decide(&world, reported);
    assert_eq!(asked.last().map(|one| &*one.name), Some("judge"));
    // A field that is set does not get the default.
    assert_eq!(url(&asked, "judge"), "https://judge.example/7/3");
    assert_eq!(words(&cycle), Vec::<String>::new());
    let [failure] = &cycle.failures[..] else {
        panic!("{:?}", cycle.failures)
    };
    assert_eq!(
        (failure.reason, &*failure.message),
        (Reason::ValidationFailed, "the judge says no quota")
    );
}

#[test]
fn a_call_that_may_fail_leaves_rules_and_gates_to_decide() {
    let entry = "
mutation:
  external: [{ name: fill, url: 'https://fill.example', continueOnError: true }]
  rules: [{ field: spec.size, default: '{{ .external.fill.size }}' }, { field: spec.size, default: 1 }]
operatorBox:
  preReconcile:
    reconcileGate:
      external: [{ name: ask, url: 'https://ask.example', continueOnError: true }]
      when: [{ field: external.ask.error, notContains: busy }]
  onReconcile: { configMaps: [{ name: a, data: { size: '{{ .spec.size }}' } }] }";
    let world = world(entry, &json!({}));
    let (cycle, _) = decide(&world, |_| bad(None, "it is down", false));
    assert_eq!((cycle.held_back, cycle.failures.len()), (None, 0));
    let map = rendered(&cycle, &key("ConfigMap", "a")).object.to_json();
    assert_eq!(map["data"]["size"], "1");
    let (cycle, asked) = decide(&world, |_| bad(Some(429), "it is busy", false));
    assert_eq!(
        (cycle.held_back, names(&asked)),
        (Some(HoldReason::Gated), vec!["ask"])
    );
}

#[test]
fn gates_see_what_rules_complete_unless_those_wait_for_answers() {
    let entry = "
mutation:
  rules: [{ field: spec.open, default: 'yes' }]
operatorBox:
  preReconcile:
    reconcileGate:
      external: [{ name: ask, url: 'https://ask.example/{{ .spec.open }}' }]
      when: [{ field: spec.open, equals: 'yes' }, { field: external.ask.status, equals: 200 }]
  onReconcile: { configMaps: [{ name: a }] }";
    let world = world(entry, &json!({}));
    let (cycle, asked) = decide(&world, |_| good(200, ""));
    assert_eq!(url(&asked, "ask"), "https://ask.example/yes");
    assert_eq!(words(&cycle), ["apply ConfigMap east/a"]);
}

#[test]
fn who_is_held_back_by_an_answer_is_looked_at_again_as_declared() {
    let entry = |call: &str| {
        format!(
            "
operatorBox:
  reconciler: {{ requeue: {{ after: '{{{{ .spec.after }}}}' }} }}
  preReconcile: {{ reconcileGate: {{ {call} when: [{{ field: spec.on, equals: 1 }}] }} }}"
        )
    };
    let asks = entry("external: [{ name: ask, url: 'https://ask.example' }],");
    let after = |entry: &str| {
        let (cycle, _) = decide(&world(entry, &json!({ "after": "30s" })), |_| good(200, ""));
        assert_eq!(cycle.held_back, Some(HoldReason::Gated));
        cycle.requeue.map(|time| time.as_secs())
    };
    assert_eq!(after(&asks), Some(30));
    // Other data that a gate reads triggers a pass by itself when it changes.
    assert_eq!(after(&entry("")), None);
}

#[test]
fn a_call_of_the_admission_is_not_made_in_a_pass() {
    let entry = "
validation:
  external:
    - { name: judge, url: 'https://judge.example', fires: { reconcile: false } }
    - { name: other, url: 'https://other.example/{{ .external.judge.called }}', fires: { reconcile: true } }
  rules:
    - { field: external.judge.status, equals: 200, message: no, when: [{ field: external.judge.called, equals: 'true' }] }
operatorBox: { onReconcile: { configMaps: [{ name: a, data: { called: '{{ .external.judge.called }}' } }] } }";
    let (cycle, asked) = decide(&world(entry, &json!({})), |_| good(200, ""));
    assert_eq!((names(&asked), cycle.failures.len()), (vec!["other"], 0));
    assert_eq!(asked[0].url, "https://other.example/false".into());
    let map = rendered(&cycle, &key("ConfigMap", "a")).object.to_json();
    assert_eq!(map["data"]["called"], "false");
}

#[test]
fn a_motif_asks_for_its_rules_with_its_inputs() {
    let motif = "---
apiVersion: orkestra.orkspace.io/v1
kind: Motif
metadata: { name: reeds }
inputs: [{ name: host }]
admission:
  mutation:
    external: [{ name: fill, url: 'https://{{ .inputs.host }}.example' }]
    rules: [{ field: spec.size, default: '{{ .external.fill.size }}' }]
  validation:
    external: [{ name: judge, url: 'https://judge.example/{{ .spec.size }}' }]
    rules: [{ field: external.judge.body, equals: fine, message: 'is {{ .external.judge.body }}' }]
";
    let entry = "
imports: [{ motif: reeds, with: { host: north } }]
mutation: { external: [{ name: fill, url: 'https://own.example' }] }
operatorBox: { onReconcile: { configMaps: [{ name: a, data: { size: '{{ .spec.size }} {{ .external.fill.size }}' } }] } }";
    let world = world_with(entry, motif, &json!({}));
    let reported = |request: &CallRequest| match &*request.url {
        "https://north.example" => good(200, r#"{"size": 4}"#),
        "https://own.example" => good(200, r#"{"size": 9}"#),
        _ => good(200, "fine"),
    };
    let (cycle, asked) = decide(&world, reported);
    assert_eq!(cycle.failures, []);
    assert_eq!(names(&asked), ["fill", "fill", "judge"]);
    assert_ne!(asked[0].place, asked[1].place, "the calls must differ");
    assert_eq!(asked[2].url, "https://judge.example/4".into());
    let map = rendered(&cycle, &key("ConfigMap", "a")).object.to_json();
    assert_eq!(map["data"]["size"], "4 9");
}

#[test]
fn at_the_end_no_call_is_made_and_rules_that_wait_for_one_do_not_act() {
    let entry = "
mutation:
  external: [{ name: fill, url: 'https://fill.example' }]
  rules: [{ field: spec.size, override: '{{ .external.fill.size }}' }, { field: spec.other, override: 2 }]
operatorBox:
  onReconcile: { configMaps: [{ name: a }] }
  onDelete: { jobs: [{ name: 'bye-{{ .spec.size }}-{{ .spec.other }}', image: x }] }";
    let mut world = world(entry, &json!({ "size": 3 }));
    world.cr["metadata"]["deletionTimestamp"] = json!("2026-03-02T01:00:00Z");
    let entropy = orkestra_template::Entropy::seeded([7; 32]);
    let deletion = orkestra_engine::reconcile::deletion::finish(
        &world.plan,
        &world.scopes,
        &world.observe(),
        "2026-03-02T01:00:01Z".parse().unwrap(),
        &entropy,
    );
    assert_eq!(deletion.failures, []);
    assert_eq!(deletion.make[0].key, key("Job.batch", "bye-3-2"));
}
