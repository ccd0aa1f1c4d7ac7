//! What a driver waits for. Futures that are needed only at times are boxed, so that an idle operator does not hold their memory.

use std::future::pending;

use tokio::time::Instant;

use super::rollout::NextPlan;
use crate::{
    operator::source_states::{self, SourceStates},
    shared::{Shared, bound_plan::BoundPlan},
};

/// Returns when everything that the next plan needs can be read, unless it waits for a kind.
pub(crate) async fn synced(next: Option<&NextPlan>) {
    match next {
        Some(next) if !next.waits => Box::pin(next.bound.synced()).await,
        _ => pending().await,
    }
}

/// Returns when a plan that cannot take over yet can process deletions.
pub(crate) async fn deletable(bound: Option<&BoundPlan>) {
    match bound {
        Some(bound) => Box::pin(bound.deletable()).await,
        None => pending().await,
    }
}

/// Returns when the state of other sources may differ from `known`.
pub(crate) async fn targets_changed(bound: Option<&BoundPlan>, known: &SourceStates) {
    match bound {
        Some(bound) => source_states::changed(bound, known).await,
        None => pending().await,
    }
}

/// Returns when a watch of the plan in force changes its state.
pub(crate) async fn changed(bound: Option<&BoundPlan>) {
    match bound {
        Some(bound) => bound.changed().await,
        None => pending().await,
    }
}

/// Returns when a watch of the next plan changes its state.
pub(crate) async fn next_changed(bound: Option<&BoundPlan>) {
    match bound {
        Some(bound) => Box::pin(bound.changed()).await,
        None => pending().await,
    }
}

/// If `wanted`, returns when the API server is reachable again; otherwise never.
pub(crate) async fn returned(shared: &Shared, wanted: bool) {
    if !wanted {
        return pending().await;
    }
    let reach = shared.context.cluster.reach();
    Box::pin(reach.back(reach.returns())).await;
}

/// Returns at that time, if there is one.
pub(crate) async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => Box::pin(tokio::time::sleep_until(at)).await,
        None => pending().await,
    }
}
