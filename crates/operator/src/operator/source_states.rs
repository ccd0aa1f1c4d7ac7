//! The state of sources that affects all custom resources of an operator: whether something they read can be read.

use orkestra_ground::changes::first;

use crate::{shared::bound_plan::BoundPlan, sources::PlanSourceStates};

/// The state of the sources of an operator.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct SourceStates {
    sources: PlanSourceStates,
    /// For each watch of children, whether its initial list is complete.
    children: Vec<bool>,
}

impl SourceStates {
    /// Returns the current state.
    pub(crate) fn of(bound: &BoundPlan) -> Self {
        Self {
            sources: bound.sources.states(),
            children: bound.shown(),
        }
    }
}

/// Returns when the state may differ from `known`, but for watches of children: for those, see [`BoundPlan::changed`].
pub(crate) async fn changed(bound: &BoundPlan, known: &SourceStates) {
    let changes = bound.sources.changes();
    // A change before this call would not be reported as a change.
    if SourceStates::of(bound) != *known {
        return;
    }
    first(changes).await;
}
