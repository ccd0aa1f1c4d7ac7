//! The kinds that an operator must watch, and how the API server serves them.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_cluster::{
    requests::{ClusterError, Served},
    watch::WatchProblem,
};
use orkestra_core::{
    plan::{GroupKind, OperatorPlan, ResourceType},
    reconcile::inventory::DeclaredKinds,
};

use crate::runtime::shared::{
    Shared,
    bound_plan::{Absence, BoundPlan},
};

/// Kinds as they are served, and kinds that cannot be watched.
#[derive(Debug, Default)]
pub(super) struct ServedKinds {
    pub(in crate::runtime) served: BTreeMap<GroupKind, Served>,
    pub(in crate::runtime) absent: BTreeMap<GroupKind, Absence>,
}

impl ServedKinds {
    /// Adds what was found out about a kind.
    ///
    /// # Errors
    /// The plan declares the kind, and the API server did not answer for it. An operator does not wait for a kind of earlier
    /// revisions: its plan needs nothing of it, and an aggregated API may be down for long.
    fn add(
        &mut self,
        kind: GroupKind,
        is_declared: bool,
        found: Result<Option<Served>, ClusterError>,
    ) -> Result<(), ClusterError> {
        let absence = match found {
            Ok(Some(served)) => {
                self.served.insert(kind, served);
                return Ok(());
            }
            Ok(None) => Absence::NotServed,
            Err(error) if is_declared => return Err(error),
            Err(error) => Absence::Unknown(WatchProblem::of(&error)),
        };
        self.absent.insert(kind, absence);
        Ok(())
    }
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
/// The API server did not answer for a kind that the plan declares.
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
            Some(served) => Ok(Some(served)),
            None => shared.context.look_up(&kind, declared).await,
        };
        found.add(kind, declared.is_some(), served)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_declared_kind_that_is_not_answered_for_is_waited_for() {
        let unavailable = || Err(ClusterError::Unavailable("no endpoints".into()));
        let mut found = ServedKinds::default();
        let earlier = GroupKind::parse("Gizmo.example.org");
        found.add(earlier.clone(), false, unavailable()).unwrap();
        found
            .add(GroupKind::parse("Gone.example.org"), false, Ok(None))
            .unwrap();
        assert!(found.add(earlier.clone(), true, unavailable()).is_err());
        assert!(found.served.is_empty());
        assert!(matches!(
            found.absent.get(&earlier),
            Some(Absence::Unknown(WatchProblem::Unavailable {
                is_lasting: false,
                ..
            }))
        ));
        let absences: Vec<_> = found.absent.values().collect();
        assert_eq!(absences[1], &Absence::NotServed);
    }
}
