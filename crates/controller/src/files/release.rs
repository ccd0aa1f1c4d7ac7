//! Releases the kinds of Katalogs that files no longer declare.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orkestra_language::api::OperatedKind;
use orkestra_plan::{GroupKind, KatalogRef, Plan};

use super::{load::LoadedKatalog, uid_of};
use crate::{
    katalog::ControllerContext, katalog::kinds_of, release::ReleaseProgress, release::group_kind,
    release::release_kind, supervisor::HoldOutcome,
};

/// Returns the kinds of a Katalog in `running`.
pub(crate) fn dropped(running: &[LoadedKatalog], katalog: &KatalogRef) -> BTreeSet<GroupKind> {
    let old = running.iter().filter(|old| old.reference == *katalog);
    old.flat_map(|old| kinds_of(&old.plan)).collect()
}

/// Returns the kinds that a plan operates, for their release.
pub(crate) fn operated(plan: &Plan) -> Vec<OperatedKind> {
    plan.operators
        .iter()
        .map(|operator| super::super::release::operated(operator))
        .collect()
}

/// Releases a kind once its operator has stopped, unless it is wanted again.
pub(crate) async fn release(
    shared: Arc<ControllerContext>,
    katalog: KatalogRef,
    kind: OperatedKind,
) {
    let left = group_kind(&kind);
    release_left(&shared, &uid_of(&katalog), &kind).await;
    shared.supervisor.released(&katalog, &left);
}

pub(crate) async fn release_left(shared: &ControllerContext, uid: &str, kind: &OperatedKind) {
    let held = group_kind(kind);
    let mut snapshot = shared.supervisor.snapshot();
    loop {
        match shared.supervisor.hold(&held, uid) {
            HoldOutcome::Claimed(_) => return,
            HoldOutcome::Busy | HoldOutcome::Unclaimed(_) => {
                if snapshot.changed().await.is_err() {
                    return;
                }
            }
            HoldOutcome::Held(_held) => {
                let cluster = &shared.context.cluster;
                match release_kind(cluster, kind, &ReleaseProgress::default()).await {
                    Ok(released) => {
                        tracing::info!(
                            kind = kind.kind,
                            resources = released.resources,
                            children = released.children,
                            "kind released"
                        );
                        return;
                    }
                    Err(error) => {
                        tracing::warn!(kind = kind.kind, error = %error, "cannot release kind");
                        tokio::time::sleep(Duration::from_secs(10)).await;
                    }
                }
            }
        }
    }
}
