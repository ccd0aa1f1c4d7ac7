//! `onDelete`: the steps before a custom resource is deleted.

use std::time::Duration;

use super::checks;
use crate::scope::At;
use orkestra_language::{api::OnDelete, diagnostics::Code};
use orkestra_plan::{
    BlockPlan, ChildPlan, Gate, GroupKind, OnDeletePlan, OnDeleteStep, OperatorPlan,
};

/// Default timeout of all steps.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);

/// Compiles the steps of the `onDelete` at `at`. `step` compiles a block's own gate and its entries.
pub(crate) fn plan(
    at: &At<'_>,
    declared: &OnDelete,
    block: BlockPlan,
    mut step: impl FnMut(&At<'_>, &orkestra_language::api::Lifecycle) -> (Gate, Vec<ChildPlan>),
) -> OnDeletePlan {
    let OnDelete {
        lifecycle,
        ordered,
        timeout,
        groups,
    } = declared;
    let ordered = ordered.unwrap_or(false);
    if ordered && groups.is_empty() {
        let message = "`ordered` has no effect without `groups`";
        at.field("ordered").warn(Code::NoEffect, message);
    }
    let (_, first) = step(at, lifecycle);
    let mut steps = Vec::new();
    if !first.is_empty() {
        steps.push(compile_step("onDelete", Gate::default(), first));
    }
    for (index, group) in groups.iter().enumerate() {
        let at = at.field("groups").index(index);
        let (gate, entries) = step(&at, &group.lifecycle);
        let place = format!("group {}", index + 1);
        steps.push(compile_step(
            group.name.as_deref().unwrap_or(&place),
            gate,
            entries,
        ));
    }
    OnDeletePlan {
        block,
        ordered,
        timeout: timeout.map_or(DEFAULT_TIMEOUT, |span| span.0),
        steps: steps.into(),
    }
}

fn compile_step(name: &str, gate: Gate, entries: Vec<ChildPlan>) -> OnDeleteStep {
    let is_job = |entry: &ChildPlan| entry.kind.group_kind() == GroupKind::parse("Job.batch");
    let (made, deleted): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_job);
    OnDeleteStep {
        name: name.into(),
        gate,
        made: made.into(),
        deleted: deleted.into(),
    }
}

/// Refuses an `onDelete` that cannot work: without our finalizer, or with Jobs that exist before.
pub(crate) fn check(at: &At<'_>, plan: &OperatorPlan) {
    let Some(on_delete) = &plan.on_delete else {
        return;
    };
    if !plan.finalizer {
        at.place(&on_delete.block.path).error_hint(
            Code::Finalizers,
            "with `finalizers: []` the resource is deleted without waiting for this",
            "remove `finalizers`",
        );
    }
    for step in &on_delete.steps {
        for job in &step.made {
            if let Some(other) = checks::same(plan, job) {
                at.place(&job.path).error_hint(
                    Code::SameChildTwice,
                    format!("{other} refers to the same Job"),
                    "give the onDelete Job another name",
                );
            }
        }
    }
}
