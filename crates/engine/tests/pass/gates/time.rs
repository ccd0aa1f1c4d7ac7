//! Conditions that depend on the time.

use jiff::{Timestamp, ToSpan};
use orkestra_engine::reconcile::verdict::Executed;
use proptest::prelude::*;
use serde_json::json;

use super::world;
use crate::pass::{
    operator::{open_crd_status, operator, pond},
    report::{self, patch},
    world::{World, words},
};

#[test]
fn a_gate_that_asks_for_the_time_keeps_what_is_there() {
    for when in [
        "time: { after: '09:00', before: '17:00' }",
        "dayOfWeek: { weekend: true }",
        "cron: '0 2 * * *', duration: 1h",
        "field: spec.water, operator: unique",
    ] {
        let declared =
            format!("onReconcile: {{ configMaps: [{{ name: a, when: [{{ {when} }}] }}] }}");
        let plan = operator(&declared);
        assert_eq!(
            plan.children[0].on_false,
            orkestra_plan::OnFalsePlan::Keep,
            "{when}"
        );
    }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

// Over 60 lines: a table of gates.
#[test]
fn a_pass_is_due_when_a_time_condition_turns() {
    let spec = json!({"open": "09:00"});
    // The gate, the time, whether the gate is open, and the time of the next check.
    let cases = [
        (
            "when: [{ time: { after: '09:00', before: '17:00' } }]",
            "2026-03-02T08:00:00Z",
            false,
            "2026-03-02T09:00:00Z",
        ),
        (
            "when: [{ time: { after: '09:00', before: '17:00' } }]",
            "2026-03-02T09:00:00Z",
            true,
            "2026-03-02T17:00:00Z",
        ),
        (
            "when: [{ time: { after: '22:00', before: '06:00' } }]",
            "2026-03-02T23:00:00Z",
            true,
            "2026-03-03T06:00:00Z",
        ),
        (
            "when: [{ time: { after: '{{ .spec.open }}' } }]",
            "2026-03-02T08:00:00Z",
            false,
            "2026-03-02T09:00:00Z",
        ),
        (
            "when: [{ dayOfWeek: { in: [Monday, tuesday] } }]",
            "2026-03-02T08:00:00Z",
            true,
            "2026-03-04T00:00:00Z",
        ),
        (
            "when: [{ dayOfWeek: { notIn: 'Monday, tuesday' } }]",
            "2026-03-02T08:00:00Z",
            false,
            "2026-03-04T00:00:00Z",
        ),
        (
            "when: [{ dayOfWeek: { weekday: false } }]",
            "2026-03-02T08:00:00Z",
            false,
            "2026-03-07T00:00:00Z",
        ),
        (
            "when: [{ cron: '0 2 * * *', duration: 1h }]",
            "2026-03-02T02:10:00Z",
            true,
            "2026-03-02T03:00:00Z",
        ),
        (
            "when: [{ cron: '@daily', duration: 90m, negate: true }]",
            "2026-03-02T00:10:00Z",
            false,
            "2026-03-02T01:30:00Z",
        ),
        (
            "or: [{ field: spec.gone, exists: true }, { time: { before: '09:00' } }]",
            "2026-03-02T08:00:00Z",
            true,
            "2026-03-02T09:00:00Z",
        ),
        (
            "when: [{ time: { after: '09:00' } }, { dayOfWeek: { in: Sunday } }]",
            "2026-03-02T10:00:00Z",
            false,
            "2026-03-03T00:00:00Z",
        ),
    ];
    for (gate, now, open, turn) in cases {
        let mut world = world(gate, &spec);
        world.now = at(now);
        let cycle = world.decide();
        assert_eq!(cycle.failures, [], "{gate}");
        assert_eq!(!cycle.intents.is_empty(), open, "{gate} {now}");
        assert_eq!(cycle.wake, Some(at(turn)), "{gate} {now}");
    }
}

#[test]
fn a_status_field_that_asks_for_the_time_is_looked_at_when_it_turns() {
    let declared =
        "status: { fields: [{ path: open, value: 'yes', when: [{ time: { after: '02:00' } }] }] }";
    let world = World::new(&operator(declared), pond(&json!({}), &json!({})));
    let mut executed = Executed::default();
    patch(&world, &open_crd_status(), &mut executed, 0);
    let wake = executed.wake.unwrap();
    assert!(wake > report::at(0) && wake <= report::at(86_400), "{wake}");
}

fn conditions() -> impl Strategy<Value = String> {
    let minute = || (0..24_u8, 0..60_u8).prop_map(|(h, m)| format!("'{h:02}:{m:02}'"));
    let base = prop_oneof![
        (minute(), minute())
            .prop_filter("a window", |(a, b)| a != b)
            .prop_map(|(a, b)| format!("time: {{ after: {a}, before: {b} }}")),
        minute().prop_map(|a| format!("time: {{ after: {a} }}")),
        "(monday|friday|sunday)(,tuesday)?"
            .prop_map(|days| format!("dayOfWeek: {{ in: '{days}' }}")),
        ("(0|7|\\*/20) (3|\\*/5) \\* \\* (\\*|1-5)", 1..600_u32)
            .prop_map(|(cron, minutes)| format!("cron: '{cron}', duration: {minutes}m")),
        Just("field: spec.on, equals: 1".to_owned()),
    ];
    (base, any::<bool>()).prop_map(|(base, negate)| format!("{{ {base}, negate: {negate} }}"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn no_gate_changes_before_the_moment_that_is_reported(
        when in proptest::collection::vec(conditions(), 0..3),
        or in proptest::collection::vec(conditions(), 0..3),
        second in 1_770_000_000_i64..1_771_000_000,
        parts in proptest::collection::vec(0.0..1.0_f64, 6),
    ) {
        let gate = format!("when: [{}], or: [{}]", when.join(", "), or.join(", "));
        let mut world = world(&gate, &json!({"on": 1}));
        world.now = Timestamp::from_second(second).unwrap();
        let now = world.decide();
        let until = now.wake.unwrap_or_else(|| world.now.checked_add(400.hours()).unwrap());
        prop_assert!(until > world.now);
        let span = until.as_second() - world.now.as_second();
        for part in parts.into_iter().chain([1.0]) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
            let ahead = ((span as f64 * part) as i64).min(span - 1);
            world.now = Timestamp::from_second(second + ahead).unwrap();
            let later = world.decide();
            prop_assert_eq!(words(&now), words(&later), "{} at {}", gate, world.now);
        }
    }
}
