//! `preReconcile` and `requeue`: gates that hold back passes over a custom resource, and rules that requeue it.

use super::{calls::DeclaredCalls, conditions, rules};
use crate::scope::At;
use orkestra_language::{
    api::{Gates, Hold, OperatorBox, PreReconcile, Reconciler, Requeue, Requeues, duration},
    diagnostics::Code,
};
use orkestra_object::value::{Path, PathStep};
use orkestra_plan::{
    Coerce, Gate, HoldPlan, OperatorPlan, PlanPlace, RequeuePlan, Stage,
    cross::{CROSS, CrossPlan},
    walk::{Expression, visit_call},
};

/// Compiles the gates of the operatorBox at `at`; `live` lists the fields of custom resources that depend on the state of
/// the cluster.
pub(crate) fn plan(at: &At<'_>, declared: &OperatorBox, live: &[Path]) -> HoldPlan {
    let default = PreReconcile::default();
    let PreReconcile {
        enqueue_gate,
        reconcile_gate,
        external: _,
    } = declared.pre_reconcile.as_ref().unwrap_or(&default);
    let before = at.field("preReconcile");
    let gate = |name: &str, hold: &Option<Hold>| {
        let hold = hold.as_ref();
        let gate = hold.map(|hold| of_gates(&before.field(name), &hold.gates));
        gate.unwrap_or_default()
    };
    let children = conditions::gate(at, &declared.when, &declared.or);
    HoldPlan {
        enqueue: gate("enqueueGate", enqueue_gate),
        reconcile: gate("reconcileGate", reconcile_gate),
        on_false: (!children.is_empty())
            .then(|| conditions::default_on_false([&children], None, None, live)),
        children,
    }
}

/// Returns the calls before a pass of the operatorBox at `at`.
pub(crate) fn calls<'a>(at: &At<'a>, declared: &'a OperatorBox) -> Vec<DeclaredCalls<'a>> {
    let Some(before) = &declared.pre_reconcile else {
        return Vec::new();
    };
    let at = at.field("preReconcile");
    let of = |at: At<'a>, calls, stage| DeclaredCalls {
        at: at.field("external"),
        calls,
        stage,
        import: None,
    };
    let mut calls = vec![of(at.clone(), &before.external, Stage::PreReconcile)];
    let gates = [
        ("enqueueGate", Stage::EnqueueGate, &before.enqueue_gate),
        (
            "reconcileGate",
            Stage::ReconcileGate,
            &before.reconcile_gate,
        ),
    ];
    for (name, stage, hold) in gates {
        if let Some(hold) = hold {
            calls.push(of(at.field(name), &hold.external, stage));
        }
    }
    calls
}

/// Refuses gates, and calls for them, that read fields completed by later rules.
pub(crate) fn check_order(at: &At<'_>, plan: &OperatorPlan) {
    let look = |expression: Expression<'_>| {
        let mut late = None;
        expression.each_read(&mut |path| {
            if late.is_none() {
                late = completed_late(plan, path);
            }
        });
        let (Some(late), Some(place)) = (late, place_of(expression)) else {
            return;
        };
        let message =
            format!("`{late}` is set later: rules of `mutation` wait for responses to calls");
        let hint = "read a field that the custom resource itself declares, or do not let rules of `mutation` wait for calls";
        at.place(place).error_hint(Code::UnknownData, message, hint);
    };
    for gate in [&plan.hold.enqueue, &plan.hold.reconcile] {
        gate.iter()
            .for_each(|condition| look(Expression::Condition(condition)));
    }
    for call in &plan.calls[..plan.calls_until(Stage::ReconcileGate)] {
        visit_call(call, 0, &mut |expression, _| look(expression));
    }
}

fn place_of(expression: Expression<'_>) -> Option<&PlanPlace> {
    match expression {
        Expression::Leaf(leaf) => Some(&leaf.path),
        Expression::Condition(condition) => Some(&condition.path),
        Expression::ForEach(_) | Expression::Body(_) => None,
    }
}

/// Returns the part of `path` that is completed late: itself, or a path that selects the other operator's resource it
/// reads.
fn completed_late(plan: &OperatorPlan, path: &Path) -> Option<Path> {
    if rules::completed_late(plan, path) {
        return Some(path.clone());
    }
    let [PathStep::Field(root), rest @ ..] = path.steps() else {
        return None;
    };
    if &**root != CROSS {
        return None;
    }
    let name = match rest.first() {
        Some(PathStep::Field(name)) => Some(name),
        _ => None,
    };
    let meant = plan
        .cross
        .iter()
        .filter(|entry| name.is_none_or(|name| entry.name == *name));
    let mut reads = meant
        .flat_map(CrossPlan::leaves)
        .flat_map(|leaf| leaf.template.reads());
    reads
        .find(|path| rules::completed_late(plan, path))
        .cloned()
}

fn of_gates(at: &At<'_>, gates: &Gates) -> Gate {
    conditions::gate(at, &gates.when, &gates.or)
}

/// Compiles when a custom resource is requeued: the first layer of `reconciler` that declares it applies.
pub(crate) fn requeue(layers: &[(At<'_>, &Reconciler)]) -> Box<[RequeuePlan]> {
    let mut declared = layers
        .iter()
        .filter_map(|(at, reconciler)| Some((at.field("requeue"), reconciler.requeue.as_ref()?)));
    match declared.next() {
        None => Box::default(),
        Some((at, Requeues::One(rule))) => requeue_rule(&at, rule).into_iter().collect(),
        Some((at, Requeues::Several(rules))) => {
            let mut rules = rules.iter().enumerate();
            let mut plans = Vec::new();
            for (index, rule) in &mut rules {
                plans.extend(requeue_rule(&at.index(index), rule));
                if rule.gates == Gates::default() {
                    break;
                }
            }
            if let Some((index, _)) = rules.next() {
                let message = "the previous rule has no condition, so this rule never applies";
                at.index(index).warn(Code::NoEffect, message);
            }
            plans.into()
        }
    }
}

/// Compiles the rule at `at`; `None` if it never asks for a pass, or after an error, which is reported.
fn requeue_rule(at: &At<'_>, declared: &Requeue) -> Option<RequeuePlan> {
    let Requeue { after, gates } = declared;
    let gate = of_gates(at, gates);
    let Some(after) = after else {
        at.error_hint(
            Code::Missing,
            "`after` is missing",
            "set the delay after a pass, such as `after: 5m`",
        );
        return None;
    };
    let at = at.field("after");
    let after = at.leaf(after, Coerce::OptionalText)?;
    match after.template.literal().map(str::trim) {
        // An empty text asks for no pass; of several rules it may be the one that applies.
        Some(literal) if !literal.is_empty() => match duration::parse(literal) {
            Ok(_) => {}
            Err(error) => {
                at.error(Code::BadDuration, error.to_string());
                return None;
            }
        },
        _ => {}
    }
    Some(RequeuePlan { after, gate })
}
