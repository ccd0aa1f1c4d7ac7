//! The kinds that an operator must watch, and how the API server serves them.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_cluster::wire::{Served, WireError};
use orkestra_core::{
    plan::{GroupKind, OperatorPlan, ResourceType},
    reconcile::inventory::Declared,
};

use super::{bound::Bound, shared::Shared};

/// Kinds as they are served, and kinds that are not served.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) served: BTreeMap<GroupKind, Served>,
    pub(super) absent: BTreeSet<GroupKind>,
}

/// Returns the kinds of the plan, and those of earlier revisions that inventories of custom resources name.
pub(super) fn needed(
    plan: &OperatorPlan,
    declared: &Declared,
    bound: Option<&Bound>,
) -> BTreeSet<GroupKind> {
    let mut needed: BTreeSet<_> = plan.kinds().map(ResourceType::group_kind).collect();
    let mut earlier = &declared.kinds - &needed;
    let records = bound
        .filter(|_| !earlier.is_empty())
        .map(|bound| bound.crs.store().snapshot())
        .unwrap_or_default();
    for record in records {
        if earlier.is_empty() {
            break;
        }
        let named = &earlier & &record.inventory.kinds;
        earlier.retain(|kind| !named.contains(kind));
        needed.extend(named);
    }
    needed
}

/// Resolves how `kinds` are served: from the previous binding, from the CRDs, from discovery.
///
/// # Errors
/// The API server did not answer.
pub(super) async fn find(
    shared: &Shared,
    plan: &OperatorPlan,
    bound: Option<&Bound>,
    kinds: BTreeSet<GroupKind>,
) -> Result<Found, WireError> {
    let mut found = Found::default();
    for kind in kinds {
        let declared = plan.kinds().find(|declared| declared.group_kind() == kind);
        let known = bound
            .and_then(|bound| bound.kind(&kind))
            .map(|kind| kind.served().clone());
        let known = known
            .filter(|served| declared.is_none_or(|declared| declared.version == served.version));
        let served = match known {
            Some(served) => Some(served),
            None => look_up(shared, &kind, declared).await?,
        };
        match served {
            Some(served) => {
                found.served.insert(kind, served);
            }
            None => {
                found.absent.insert(kind);
            }
        }
    }
    Ok(found)
}

/// Returns how a kind is served, from the CRDs or else from discovery.
///
/// # Errors
/// The API server did not answer.
pub(super) async fn look_up(
    shared: &Shared,
    kind: &GroupKind,
    declared: Option<&ResourceType>,
) -> Result<Option<Served>, WireError> {
    let crds = &shared.context.crds;
    if let Some(crd) = crds.get(kind) {
        // An inventory names no version: any served version shows the same objects.
        let mut names = crd.versions.iter().map(|version| &version.name);
        let version = match declared {
            Some(declared) => Some(&declared.version),
            None => names.find(|name| crd.serves(name)),
        };
        return Ok(version.and_then(|version| crds.served(kind, version)));
    }
    if let Some(declared) = declared {
        if let Some(served) = Served::built_in(kind, &declared.version) {
            return Ok(Some(served));
        }
        return shared
            .context
            .wire
            .discover(&kind.group, &declared.version, &kind.kind)
            .await;
    }
    for version in shared.context.wire.versions(&kind.group).await? {
        if let Some(served) = shared
            .context
            .wire
            .discover(&kind.group, &version, &kind.kind)
            .await?
        {
            return Ok(Some(served));
        }
    }
    Ok(None)
}
