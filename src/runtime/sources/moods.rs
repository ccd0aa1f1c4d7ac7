//! The state of sources that affects all custom resources of an operator: whether something they read can be read.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use orkestra_core::{enrich::Relation, value::Key};
use orkestra_ground::changes::{change, first};
use tokio::sync::watch;

use super::{super::bound::Bound, cross::Mood};

/// The state of the sources of an operator.
#[derive(Debug, Default, PartialEq)]
pub(in crate::runtime) struct Moods {
    targets: BTreeMap<Key, Mood>,
    belongings: Vec<(Relation, Result<(), String>)>,
    observed: (Vec<bool>, Vec<Result<(), String>>),
    /// For each watch of children, whether its initial list is complete.
    children: Vec<bool>,
}

impl Moods {
    /// Returns the current state.
    pub(in crate::runtime) fn of(bound: &Bound) -> Self {
        Self {
            targets: bound.targets.moods(),
            belongings: bound.belongings.readable(),
            observed: bound.observed.moods(),
            children: bound.shown(),
        }
    }
}

/// Returns when the state may differ from `told`.
pub(in crate::runtime) async fn changed(bound: &Bound, told: &Moods) {
    let mut changes = bound.targets.changes();
    let states = bound.belongings.states().into_iter();
    changes.extend(states.chain(bound.observed.states()).map(next));
    changes.extend(bound.kinds.iter().flat_map(|kind| kind.states()).map(next));
    // A change before this call would not be reported as a change.
    if Moods::of(bound) != *told {
        return;
    }
    first(changes).await;
}

/// Returns at the next change of a watched value.
pub(super) fn next<T: Send + Sync + 'static>(
    mut value: watch::Receiver<T>,
) -> BoxFuture<'static, ()> {
    value.mark_unchanged();
    Box::pin(async move { change(&mut value).await })
}
