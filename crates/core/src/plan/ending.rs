//! `onDelete`: the steps before a custom resource is deleted.

use std::time::Duration;

use super::{BlockPlan, ChildPlan, Gate, GroupKind, OperatorPlan, ResourceType, checks};
use crate::{api::OnDelete, diagnostics::Code, resources::scope::At};

/// Default timeout of all steps.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(5);

/// The steps to run before a custom resource is deleted.
///
/// Source: language reference, lifecycle blocks.
#[derive(Debug)]
pub struct EndPlan {
    /// `onDelete` as a whole; if its gate is closed, no step runs.
    pub block: BlockPlan,
    /// True if a step starts when the one before is done; otherwise all start at once.
    pub ordered: bool,
    /// The timeout of all steps, from the deletion on.
    pub timeout: Duration,
    /// The steps, in order.
    pub steps: Box<[EndStep]>,
}

/// One step of `onDelete`.
#[derive(Debug)]
pub struct EndStep {
    /// Its name, or its path in the Katalog.
    pub name: Box<str>,
    /// The gate of the step.
    pub gate: Gate,
    /// Jobs to create and wait for.
    pub made: Box<[ChildPlan]>,
    /// Children to delete and wait for; their bodies are ignored.
    pub deleted: Box<[ChildPlan]>,
}

impl EndPlan {
    /// Returns every entry.
    pub fn entries(&self) -> impl Iterator<Item = &ChildPlan> {
        let steps = self.steps.iter();
        steps.flat_map(|step| step.made.iter().chain(&step.deleted))
    }
}

impl OperatorPlan {
    /// Returns the kinds of which its custom resources may have children.
    pub fn kinds(&self) -> impl Iterator<Item = &ResourceType> {
        let ending = self
            .ending
            .as_deref()
            .into_iter()
            .flat_map(EndPlan::entries);
        self.children.iter().chain(ending).map(|child| &child.kind)
    }
}

/// Compiles the steps of the `onDelete` at `at`. `step` compiles a block's own gate and its entries.
pub(super) fn compile(
    at: &At<'_>,
    declared: &OnDelete,
    block: BlockPlan,
    mut step: impl FnMut(&At<'_>, &crate::api::Lifecycle) -> (Gate, Vec<ChildPlan>),
) -> EndPlan {
    let OnDelete {
        lifecycle,
        ordered,
        timeout,
        groups,
    } = declared;
    let ordered = ordered.unwrap_or(false);
    if ordered && groups.is_empty() {
        let message = "without `groups` there is no order";
        at.field("ordered").warn(Code::NoEffect, message);
    }
    let (_, first) = step(at, lifecycle);
    let mut steps = Vec::new();
    if !first.is_empty() {
        steps.push(one("onDelete", Gate::default(), first));
    }
    for (index, group) in groups.iter().enumerate() {
        let at = at.field("groups").index(index);
        let (gate, entries) = step(&at, &group.lifecycle);
        let place = format!("group {}", index + 1);
        steps.push(one(group.name.as_deref().unwrap_or(&place), gate, entries));
    }
    EndPlan {
        block,
        ordered,
        timeout: timeout.map_or(DEFAULT_TIMEOUT, |span| span.0),
        steps: steps.into(),
    }
}

fn one(name: &str, gate: Gate, entries: Vec<ChildPlan>) -> EndStep {
    let is_job = |entry: &ChildPlan| entry.kind.group_kind() == GroupKind::parse("Job.batch");
    let (made, deleted): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_job);
    EndStep {
        name: name.into(),
        gate,
        made: made.into(),
        deleted: deleted.into(),
    }
}

/// Refuses an `onDelete` that cannot work: without our finalizer, or with Jobs that exist before.
pub(super) fn check(at: &At<'_>, plan: &OperatorPlan) {
    let Some(ending) = &plan.ending else { return };
    if !plan.finalizer {
        at.place(&ending.block.path).error_hint(
            Code::Finalizers,
            "with `finalizers: []` nothing holds the resource until this is done",
            "leave `finalizers` out",
        );
    }
    for step in &ending.steps {
        for job in &step.made {
            if let Some(other) = checks::same(plan, job) {
                at.place(&job.path).error_hint(
                    Code::SameChildTwice,
                    format!("{other} is this Job too"),
                    "give the Job of the end a name of its own",
                );
            }
        }
    }
}
