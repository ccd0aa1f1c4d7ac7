//! The state of sources that affects all custom resources of an operator: whether something they read can be read.

use std::collections::BTreeMap;

use orkestra_core::{enrich::Relation, value::Key};
use orkestra_ground::changes::first;

use crate::runtime::{
    shared::bound_plan::BoundPlan,
    sources::{cross::TargetState, next},
    status::health::OperatorState,
};

/// The state of the sources of an operator.
#[derive(Debug, Default, PartialEq)]
pub(super) struct SourceStates {
    targets: BTreeMap<Key, TargetState>,
    related: Vec<(Relation, Result<(), String>)>,
    observed: (Vec<bool>, Vec<Result<(), String>>),
    /// For each watch of children, whether its initial list is complete.
    children: Vec<bool>,
    /// The state of the operator itself, if the plan reads it.
    own: Option<OperatorState>,
}

impl SourceStates {
    /// Returns the current state.
    pub(in crate::runtime) fn of(bound: &BoundPlan) -> Self {
        Self {
            targets: bound.targets.source_states(),
            related: bound.related.readable(),
            observed: bound.observed.source_states(),
            children: bound.shown(),
            own: bound.own.source_state(),
        }
    }
}

/// Returns when the state may differ from `known`, but for watches of children: for those, see [`BoundPlan::changed`].
pub(in crate::runtime) async fn changed(bound: &BoundPlan, known: &SourceStates) {
    let mut changes = bound.targets.changes();
    changes.extend(bound.own.change());
    let states = bound.related.states().into_iter();
    changes.extend(states.chain(bound.observed.states()).map(next));
    // A change before this call would not be reported as a change.
    if SourceStates::of(bound) != *known {
        return;
    }
    first(changes).await;
}
