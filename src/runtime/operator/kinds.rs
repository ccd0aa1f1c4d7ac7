//! The kinds that an operator must watch, and how the API server serves them.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_cluster::requests::{ClusterError, Served};
use orkestra_core::{
    plan::{GroupKind, OperatorPlan, ResourceType},
    reconcile::inventory::DeclaredKinds,
};

use crate::runtime::shared::{Shared, bound_plan::BoundPlan};

/// Kinds as they are served, and kinds that are not served.
#[derive(Debug, Default)]
pub(super) struct ServedKinds {
    pub(in crate::runtime) served: BTreeMap<GroupKind, Served>,
    pub(in crate::runtime) absent: BTreeSet<GroupKind>,
}

/// Returns the kinds of the plan, and those of earlier revisions that inventories of custom resources name.
pub(in crate::runtime) fn needed(
    plan: &OperatorPlan,
    declared: &DeclaredKinds,
    bound: Option<&BoundPlan>,
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
pub(in crate::runtime) async fn find(
    shared: &Shared,
    plan: &OperatorPlan,
    bound: Option<&BoundPlan>,
    kinds: BTreeSet<GroupKind>,
) -> Result<ServedKinds, ClusterError> {
    let mut found = ServedKinds::default();
    for kind in kinds {
        let declared = plan.kinds().find(|declared| declared.group_kind() == kind);
        let known = bound
            .and_then(|bound| bound.kind(&kind))
            .map(|kind| kind.served().clone());
        let known = known
            .filter(|served| declared.is_none_or(|declared| declared.version == served.version));
        let served = match known {
            Some(served) => Some(served),
            None => shared.context.look_up(&kind, declared).await?,
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
