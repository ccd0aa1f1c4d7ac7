//! Claims on kinds: which of several Katalogs has a kind, and which of several versions reconciles.
//!
//! Among the Katalogs of one installation the senior one has a kind; among installations, the one that claimed it first
//! ([`Keeper`]).

mod book;
mod keeper;
mod record;

use std::sync::Arc;

use kube::core::Version;
use orkestra_plan::OperatorPlan;

pub(crate) use self::{
    book::{ClaimRequest, ClaimState, Holder, Standings},
    keeper::Keeper,
    record::{Claim, Claimant, EXPIRY, LeaseContent, ObjectVersion, lease_of},
};
use orkestra_operator::Role;

/// The rank of a Katalog among those that claim the same kind; the smallest has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seniority {
    /// From a file: its position on the command line, from 0.
    Given(usize),
    /// From the cluster: `metadata.creationTimestamp`, the older one first. It is in whole seconds.
    Created(jiff::Timestamp),
}

/// Returns the role of `operator` beside the entries of its Katalog that serve other versions of its kind.
///
/// One reconciles: the one whose version is `storage`, the version the cluster stores, or else the one with the highest
/// version. Of two entries with the same version, the first by name reconciles.
///
/// Source of the order: Kubernetes, "Version priority" of custom resource definitions.
pub(crate) fn role(
    operator: &OperatorPlan,
    siblings: &[Arc<OperatorPlan>],
    storage: Option<&str>,
) -> Role {
    let kind = operator.resource.group_kind();
    let versions = siblings
        .iter()
        .filter(|sibling| sibling.resource.group_kind() == kind);
    let first = versions.min_by_key(|sibling| {
        let version = &*sibling.resource.version;
        (
            storage != Some(version),
            std::cmp::Reverse(Version::parse(version).priority()),
            &sibling.name,
        )
    });
    match first {
        Some(first) if first.name != operator.name => Role::Yields(first.name.clone()),
        _ => Role::Reconciles,
    }
}
