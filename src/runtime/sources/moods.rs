//! What all custom resources of an operator must hear of at once: that something they read can be read, or not any more.

use std::collections::BTreeMap;

use futures::future::BoxFuture;
use orkestra_core::{enrich::Relation, value::Key};
use orkestra_ground::changes::{change, first};
use tokio::sync::watch;

use super::{super::bound::Bound, cross::Mood};

/// How the sources of an operator are.
#[derive(Debug, Default, PartialEq)]
pub(in crate::runtime) struct Moods {
    targets: BTreeMap<Key, Mood>,
    belongings: Vec<(Relation, Result<(), String>)>,
    observed: (Vec<bool>, Vec<Result<(), String>>),
    /// Which watches of children have shown what there is.
    children: Vec<bool>,
}

impl Moods {
    /// How they are now.
    pub(in crate::runtime) fn of(bound: &Bound) -> Self {
        Self {
            targets: bound.targets.moods(),
            belongings: bound.belongings.readable(),
            observed: bound.observed.moods(),
            children: bound.shown(),
        }
    }
}

/// Returns when they may be otherwise than was told.
pub(in crate::runtime) async fn changed(bound: &Bound, told: &Moods) {
    let mut changes = bound.targets.changes();
    let states = bound.belongings.states().into_iter();
    changes.extend(states.chain(bound.observed.states()).map(next));
    changes.extend(bound.kinds.iter().flat_map(|kind| kind.states()).map(next));
    // What changed before anybody waited is no change any more.
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
