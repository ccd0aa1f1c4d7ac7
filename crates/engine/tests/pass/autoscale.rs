//! The capacity of an operator: its conditions, under a clock that the test sets.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use orkestra_engine::reconcile::autoscale::{AutoscaleMetrics, AutoscalerState, evaluate};
use orkestra_object::value::Key;
use orkestra_plan::{AutoscalePlan, CapacityPlan, definitions::Schemas};

use super::operator::of_document;

/// The autoscaler in the project's first documents, verbatim.
const SEED: &str = r#"
        autoscale:
          interval: 30s   # how often to evaluate conditions
          cooldown: 2m    # how long conditions must be false before reverting

          conditions:
            when:
              # Scale based on this operator's own metrics
              - field: metrics.queueDepth
                greaterThan: "300"

              # Or scale based on another operator's metrics (Cross IPC)
              - field: cross.db.metrics.queueDepth
                greaterThan: "500"
              - field: cross.db.metrics.workersBusyPercent
                greaterThan: "70"

          do:
            workers: 12
            queueDepth: 1000
"#;

/// Returns the autoscaler of the operator `app`, in a Katalog with an operator `db`.
fn plan(autoscale: &str) -> AutoscalePlan {
    let text = format!(
        "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: {{ name: waters }}
spec:
  crds:
    db:
      apiTypes: {{ group: water.example, version: v1, kind: Db, plural: dbs }}
    app:
      apiTypes: {{ group: water.example, version: v1, kind: App, plural: apps }}
      operatorBox:
        reconciler: {{ workers: 5, queue: {{ maxDepth: 100 }} }}
{autoscale}"
    );
    let app = of_document(&text, &Schemas::default());
    *Arc::into_inner(app).unwrap().autoscale.unwrap()
}

fn profile(name: &str) -> AutoscalePlan {
    plan(&format!("        autoscale: {{ profile: {name} }}\n"))
}

fn at(seconds: i64) -> Timestamp {
    // A Saturday, 22:00.
    let start: Timestamp = "2026-11-21T22:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

fn busy(queue_depth: u64, workers_busy_percent: u64) -> AutoscaleMetrics {
    AutoscaleMetrics {
        queue_depth,
        workers: 5,
        workers_busy_percent,
        ..AutoscaleMetrics::default()
    }
}

fn holds(
    plan: &AutoscalePlan,
    own: &AutoscaleMetrics,
    db: Option<AutoscaleMetrics>,
    now: Timestamp,
) -> bool {
    let cross: BTreeMap<Key, AutoscaleMetrics> =
        db.map(|db| (Key::from("db"), db)).into_iter().collect();
    let decision = evaluate(plan, own, &cross, now);
    assert_eq!(decision.failure, None);
    decision.holds
}

#[test]
fn the_seeds_conditions_ask_for_metrics_of_two_operators() {
    let plan = plan(SEED);
    assert_eq!(plan.interval, Duration::from_secs(30));
    assert_eq!(plan.cooldown, Duration::from_mins(2));
    let expected = CapacityPlan {
        workers: Some(12),
        queue_depth: Some(1000),
        resync: None,
    };
    assert_eq!(plan.capacity, expected);
    assert_eq!(*plan.cross, [(Key::from("db"), "db".into())]);
    for (own, db, expected) in [
        (busy(301, 0), Some(busy(501, 71)), true),
        (busy(300, 99), Some(busy(501, 71)), false),
        (busy(301, 0), Some(busy(500, 71)), false),
        (busy(301, 0), Some(busy(501, 70)), false),
        (busy(301, 0), None, false),
    ] {
        assert_eq!(holds(&plan, &own, db, at(0)), expected, "{own:?} {db:?}");
    }
}

#[test]
fn a_condition_on_an_operator_that_does_not_run_never_holds() {
    for condition in [
        "lessThan: 5",
        "equals: \"\"",
        "notEquals: 7",
        "notExists: true",
    ] {
        let conditions = format!("[{{ field: cross.db.metrics.queueDepth, {condition} }}]");
        let plan = plan(&format!(
            "        autoscale: {{ conditions: {{ when: {conditions} }}, do: {{ workers: 9 }} }}\n"
        ));
        assert!(!holds(&plan, &busy(0, 0), None, at(0)), "{condition}");
    }
    let either = "[{ field: cross.db.metrics.queueDepth, lessThan: 5 }, { field: metrics.queueDepth, lessThan: 5 }]";
    let plan = plan(&format!(
        "        autoscale: {{ conditions: {{ or: {either} }}, do: {{ workers: 9 }} }}\n"
    ));
    assert!(holds(&plan, &busy(0, 0), None, at(0)));
}

#[test]
fn it_goes_up_at_once_and_back_when_nothing_held_for_the_cooldown() {
    let plan = plan(SEED);
    let mut scaling = AutoscalerState::default();
    let mut steps = Vec::new();
    for (second, holds) in [
        (0, false),
        (30, true),
        (60, false),
        (150, false),
        // The conditions hold again just before the cooldown ends.
        (179, true),
        (200, false),
        (319, false),
        (320, false),
        (350, false),
    ] {
        scaling = scaling.after(&plan, holds, at(second));
        steps.push((second, scaling.is_active()));
    }
    let expected = [
        (0, false),
        (30, true),
        (60, true),
        (150, true),
        (179, true),
        (200, true),
        (319, true),
        (320, false),
        (350, false),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn without_a_cooldown_it_goes_back_at_once() {
    let plan = plan(
        "        autoscale: { cooldown: 0s, conditions: { when: [{ field: metrics.queueDepth, greaterThan: 3 }] }, do: { resync: 5s } }\n",
    );
    let up = AutoscalerState::default().after(&plan, true, at(0));
    assert!(up.is_active());
    assert!(!up.after(&plan, false, at(1)).is_active());
}

#[test]
fn the_next_look_is_at_the_interval_or_when_something_is_due() {
    let plan = plan(SEED);
    let quiet = AutoscalerState::default();
    assert_eq!(quiet.next_look(&plan, None, at(0)), at(30));
    assert_eq!(quiet.next_look(&plan, Some(at(7)), at(0)), at(7));
    assert_eq!(quiet.next_look(&plan, Some(at(0)), at(0)), at(30));
    let cooling = AutoscalerState::Active.after(&plan, false, at(0));
    assert_eq!(cooling.next_look(&plan, None, at(60)), at(90));
    assert_eq!(cooling.next_look(&plan, None, at(100)), at(120));
}

#[test]
fn profiles_are_shares_of_what_the_operator_has() {
    // 5 workers, a depth of 100: workers, depth, interval and cooldown in seconds.
    for (name, workers, depth, interval, cooldown) in [
        ("burst", 20, Some(1000), 5, 30),
        ("steady", 10, Some(300), 30, 120),
        ("batch", 15, Some(800), 60, 300),
        ("latency-sensitive", 13, None, 15, 60),
        ("Cost-Optimized", 2, Some(50), 30, 600),
    ] {
        let plan = profile(name);
        let expected = CapacityPlan {
            workers: Some(workers),
            queue_depth: depth,
            resync: None,
        };
        assert_eq!(plan.capacity, expected, "{name}");
        let times = (plan.interval.as_secs(), plan.cooldown.as_secs());
        assert_eq!(times, (interval, cooldown), "{name}");
    }
}

#[test]
fn profiles_ask_for_what_they_are_made_for() {
    let slow = AutoscaleMetrics {
        reconcile_duration_p95_ms: 201,
        ..busy(0, 0)
    };
    for (name, own, expected) in [
        ("burst", busy(601, 0), true),
        ("burst", busy(600, 100), false),
        ("steady", busy(121, 71), true),
        ("steady", busy(121, 70), false),
        ("steady", busy(120, 71), false),
        ("latency-sensitive", slow, true),
        ("latency-sensitive", busy(900, 100), false),
        ("cost-optimized", busy(41, 39), true),
        ("cost-optimized", busy(41, 40), false),
    ] {
        assert_eq!(
            holds(&profile(name), &own, None, at(0)),
            expected,
            "{name} {own:?}"
        );
    }
}

#[test]
fn a_batch_runs_at_night_and_is_looked_at_when_it_turns() {
    let plan = profile("batch");
    let none = BTreeMap::new();
    let hour = 3600;
    let before = evaluate(&plan, &busy(0, 0), &none, at(hour - 20));
    assert!(!before.holds);
    let next = AutoscalerState::default().next_look(&plan, before.changes_at, at(hour - 20));
    assert_eq!(next, at(hour), "23:00, before the interval ends");
    assert!(holds(&plan, &busy(0, 0), None, at(hour)));
    assert!(holds(&plan, &busy(0, 0), None, at(4 * hour - 1)));
    assert!(!holds(&plan, &busy(0, 0), None, at(4 * hour)));
}
