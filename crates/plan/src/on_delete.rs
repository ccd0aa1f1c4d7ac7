//! The steps to run before a custom resource is deleted.

use std::time::Duration;

use super::{BlockPlan, ChildPlan, Gate};

/// The steps to run before a custom resource is deleted.
///
/// Source: language reference, lifecycle blocks.
#[derive(Debug)]
pub struct OnDeletePlan {
    /// `onDelete` as a whole; if its gate is closed, no step runs.
    pub block: BlockPlan,
    /// True if a step starts when the one before is done; otherwise all start at once.
    pub ordered: bool,
    /// The timeout of all steps, from the deletion on.
    pub timeout: Duration,
    /// The steps, in order.
    pub steps: Box<[OnDeleteStep]>,
}

/// One step of `onDelete`.
#[derive(Debug)]
pub struct OnDeleteStep {
    /// Its name, or its path in the Katalog.
    pub name: Box<str>,
    /// The gate of the step.
    pub gate: Gate,
    /// Jobs to create and wait for.
    pub made: Box<[ChildPlan]>,
    /// Children to delete and wait for; their bodies are ignored.
    pub deleted: Box<[ChildPlan]>,
}

impl OnDeletePlan {
    /// Returns every entry.
    pub fn entries(&self) -> impl Iterator<Item = &ChildPlan> {
        let steps = self.steps.iter();
        steps.flat_map(|step| step.made.iter().chain(&step.deleted))
    }

    /// Returns every entry, in the order of [`Self::entries`].
    pub fn entries_mut(&mut self) -> impl Iterator<Item = &mut ChildPlan> {
        let steps = self.steps.iter_mut();
        steps.flat_map(|step| step.made.iter_mut().chain(&mut step.deleted))
    }
}
