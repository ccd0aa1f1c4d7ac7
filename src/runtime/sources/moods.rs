//! What all custom resources of an operator must hear of at once: that something they read can be read, or not any more.

use std::{collections::BTreeMap, future::pending};

use futures::future::{BoxFuture, select_all};
use orkestra_core::{api::EnrichTarget, value::Key};
use tokio::sync::watch;

use super::{super::bound::Bound, cross::Mood};

/// How the sources of an operator are.
#[derive(Debug, Default, PartialEq)]
pub(in crate::runtime) struct Moods {
    targets: BTreeMap<Key, Mood>,
    belongings: Vec<(EnrichTarget, Result<(), String>)>,
    observed: (Vec<bool>, Vec<Result<(), String>>),
}

impl Moods {
    /// How they are now.
    pub(in crate::runtime) fn of(bound: &Bound) -> Self {
        Self {
            targets: bound.targets.moods(),
            belongings: bound.belongings.readable(),
            observed: bound.observed.moods(),
        }
    }
}

/// Returns when they may be otherwise than was told.
pub(in crate::runtime) async fn changed(bound: &Bound, told: &Moods) {
    let mut changes = bound.targets.changes();
    let states = bound.belongings.states().into_iter();
    changes.extend(states.chain(bound.observed.states()).map(next));
    // What changed before anybody waited is no change any more.
    if Moods::of(bound) != *told {
        return;
    }
    if changes.is_empty() {
        pending::<()>().await;
    }
    select_all(changes).await;
}

/// Returns at the next change of a watched value; one that is over has none.
pub(super) fn next<T: Send + Sync + 'static>(
    mut value: watch::Receiver<T>,
) -> BoxFuture<'static, ()> {
    value.mark_unchanged();
    Box::pin(async move {
        if value.changed().await.is_err() {
            pending::<()>().await;
        }
    })
}
