//! The changes from one plan to the next.

use orkestra_plan::{self, Plan, PlanChange};

use super::{entry, with_entries};

/// Returns the changes as text.
fn changes(old: &Plan, new: &Plan) -> Vec<String> {
    let word = |change| match change {
        PlanChange::Stop(name) => format!("stop {name}"),
        PlanChange::Start(plan) => format!("start {}", plan.name),
        PlanChange::Reconfigure { name, plan } => {
            assert_eq!(name, plan.name);
            format!("reconfigure {name}")
        }
    };
    orkestra_plan::diff(old, new)
        .into_iter()
        .map(word)
        .collect()
}

#[test]
fn an_equal_plan_changes_nothing() {
    let plan = || with_entries(&[entry("pond", "Pond", "cold")]);
    assert!(changes(&plan(), &plan()).is_empty());
}

#[test]
fn only_the_operators_that_differ_are_disturbed_and_stops_come_first() {
    let old = with_entries(&[
        entry("a", "A", "x"),
        entry("b", "B", "x"),
        entry("c", "C", "x"),
        entry("d", "D", "x"),
    ]);
    let new = with_entries(&[
        entry("a", "A", "x"),
        entry("b", "B", "y"),
        entry("d", "Other", "x"),
        entry("e", "C", "x"),
    ]);
    assert_eq!(
        changes(&old, &new),
        ["stop c", "stop d", "reconfigure b", "start d", "start e"]
    );
}

#[test]
fn workers_and_resync_reconfigure_without_another_hash() {
    let old = with_entries(&[entry("a", "A", "x")]);
    for field in ["workers: 9", "resync: 1h"] {
        let reconciler = format!("operatorBox: {{ reconciler: {{ {field} }}, ");
        let new = with_entries(&[entry("a", "A", "x").replace("operatorBox: { ", &reconciler)]);
        assert_eq!(changes(&old, &new), ["reconfigure a"]);
        assert_eq!(old.operators[0].hash, new.operators[0].hash);
    }
}

#[test]
fn pages_and_cross_access_reconfigure_without_another_hash() {
    let old = with_entries(&[entry("a", "A", "x")]);
    for field in ["endpoints: { info: false }", "crossAccess: false"] {
        let field = format!("{{ {field}, ");
        let new = with_entries(&[entry("a", "A", "x").replacen("{ ", &field, 1)]);
        assert_eq!(changes(&old, &new), ["reconfigure a"]);
        assert_eq!(old.operators[0].hash, new.operators[0].hash);
    }
}

#[test]
fn a_description_changes_nothing() {
    let old = with_entries(&[entry("a", "A", "x")]);
    let new = with_entries(&[entry("a", "A", "x").replacen("{ ", "{ description: deep, ", 1)]);
    assert!(changes(&old, &new).is_empty());
}
