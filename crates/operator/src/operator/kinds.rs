//! The kinds that an operator must watch, and how the API server serves them.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::discriminant,
};

use orkestra_cluster::{
    requests::{ClusterError, Served},
    watch::WatchProblem,
};
use orkestra_engine::reconcile::inventory::DeclaredKinds;
use orkestra_plan::{GroupKind, OperatorPlan, ResourceType};

use crate::shared::{
    Shared,
    bound_plan::{Absence, BoundPlan},
};

/// Kinds as they are served, and kinds that cannot be watched.
#[derive(Debug, Default)]
pub(crate) struct ServedKinds {
    pub(crate) served: BTreeMap<GroupKind, Served>,
    pub(crate) absent: BTreeMap<GroupKind, Absence>,
}

impl ServedKinds {
    /// Adds what was found out about a kind; `before` is why it was not watched so far.
    ///
    /// # Errors
    /// The plan declares the kind, and the API server did not answer for it. An operator does not wait for a kind of earlier
    /// revisions: its plan needs nothing of it, and an aggregated API may be down for long.
    fn add(
        &mut self,
        kind: GroupKind,
        is_declared: bool,
        before: Option<&Absence>,
        found: Result<Option<Served>, ClusterError>,
    ) -> Result<(), ClusterError> {
        let absence = match found {
            Ok(Some(served)) => {
                self.served.insert(kind, served);
                return Ok(());
            }
            Ok(None) => Absence::NotServed,
            Err(error) if is_declared => return Err(error),
            Err(error) => {
                let problem = WatchProblem::of(&error);
                // The first message stays while the problem lasts: one with a port or a time that differs at each attempt would
                // bind the plan again and queue every custom resource.
                let lasts = |before: &&Absence| match before {
                    Absence::Unknown(known) => discriminant(known) == discriminant(&problem),
                    Absence::NotServed => false,
                };
                let known = before.filter(lasts).cloned();
                known.unwrap_or(Absence::Unknown(problem))
            }
        };
        self.absent.insert(kind, absence);
        Ok(())
    }
}

/// Returns the kinds of the plan, and those of earlier revisions that inventories of custom resources name.
pub(crate) fn needed(
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
pub(crate) async fn find(
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
        let before = bound.and_then(|bound| bound.absent.get(&kind));
        found.add(kind, declared.is_some(), before, served)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns why a kind that was not watched for `before` is not watched after discovery failed with that message.
    fn absence(message: &str, before: Option<&Absence>) -> Absence {
        let (kind, mut found) = (
            GroupKind::parse("Gizmo.example.org"),
            ServedKinds::default(),
        );
        let failed = Err(ClusterError::Unavailable(message.into()));
        found.add(kind.clone(), false, before, failed).unwrap();
        found.absent.remove(&kind).unwrap()
    }

    fn unknown(message: &str) -> Absence {
        Absence::Unknown(WatchProblem::Unavailable {
            message: ClusterError::Unavailable(message.into()).to_string(),
            is_lasting: false,
        })
    }

    #[test]
    fn only_a_declared_kind_that_is_not_answered_for_is_waited_for() {
        let (kind, mut found) = (
            GroupKind::parse("Gizmo.example.org"),
            ServedKinds::default(),
        );
        let failed = || Err(ClusterError::Unavailable("no endpoints".into()));
        assert!(found.add(kind.clone(), true, None, failed()).is_err());
        assert!(found.absent.is_empty());
        found.add(kind.clone(), false, None, failed()).unwrap();
        assert_eq!(found.absent.get(&kind), Some(&unknown("no endpoints")));
        found.add(kind.clone(), false, None, Ok(None)).unwrap();
        assert_eq!(found.absent.get(&kind), Some(&Absence::NotServed));
        assert!(found.served.is_empty());
    }

    #[test]
    fn a_problem_that_lasts_keeps_its_first_message() {
        let first = absence("from port 41002", None);
        assert_eq!(absence("from port 41003", Some(&first)), first);
        let forbidden = Absence::Unknown(WatchProblem::Forbidden {
            message: "no".into(),
        });
        for before in [Absence::NotServed, forbidden] {
            assert_eq!(
                absence("no endpoints", Some(&before)),
                unknown("no endpoints")
            );
        }
    }
}
