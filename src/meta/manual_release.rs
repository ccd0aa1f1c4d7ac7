//! Manual releases: `ork release`, if no controller does it.

use jiff::Timestamp;
use orkestra_cluster::wire::Wire;
use orkestra_core::{
    api::names,
    plan::{GroupKind, KatalogRef, rbac::CLAIMS_NAMESPACE},
};
use serde_json::json;

use super::{
    calls::{CallError, Resource},
    claims::{Claim, EXPIRY, Record, lease_of},
    katalog::{KatalogObject, group_kind},
    release::{Progress, ReleaseError, Released, release_kind},
};

/// The result for one kind of a Katalog.
#[derive(Debug)]
pub enum Outcome {
    /// It was released.
    Released(Released),
    /// The named other Katalog or Komposer has the kind.
    Claimed(String),
    /// It could not be released.
    Failed(ReleaseError),
}

/// Why a Katalog of the cluster could not be released at all.
#[derive(Debug, thiserror::Error)]
pub enum LetGoError {
    /// There is no such Katalog.
    #[error("{} does not exist", .0.titled())]
    NotFound(KatalogRef),
    /// It is not being deleted: its controller would revert the release.
    #[error(
        "{title} is not being deleted: run `kubectl delete {kind} {name} --namespace {namespace}` first",
        title = .katalog.titled(), kind = .katalog.kind.kind().to_lowercase(), name = .katalog.name, namespace = .katalog.namespace
    )]
    NotDeleted {
        /// The Katalog.
        katalog: KatalogRef,
    },
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
}

/// Releases the kinds that a Katalog under deletion operated, one by one, and then the Katalog, unless a kind failed.
///
/// # Errors
/// [`LetGoError`]; a kind that could not be released is reported in its [`Outcome`].
pub async fn release_katalog(
    wire: &Wire,
    katalog: &KatalogRef,
) -> Result<Vec<(GroupKind, Outcome)>, LetGoError> {
    let katalogs = Resource::declaring(wire, katalog.kind);
    let namespace = Some(katalog.namespace.as_str());
    let found = katalogs.get(namespace, &katalog.name).await?;
    let object = found.ok_or_else(|| LetGoError::NotFound(katalog.clone()))?;
    let object = KatalogObject::new(object);
    if object.metadata.deletion_timestamp.is_none() {
        let katalog = katalog.clone();
        return Err(LetGoError::NotDeleted { katalog });
    }
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let leases = Resource::leases(wire);
    let (mut outcomes, mut own) = (Vec::new(), Vec::new());
    for kind in &object.status.operated {
        let lease = lease_of(&group_kind(kind));
        let claim = claim_of(&leases, &lease).await?;
        let outcome = match claim {
            Some(claim) if claim.claimant.uid != uid => {
                Outcome::Claimed(claim.claimant.katalog.titled())
            }
            claim => {
                own.extend(claim.map(|claim| (lease, claim.state)));
                let released = release_kind(wire, kind, &Progress::default()).await;
                released.map_or_else(Outcome::Failed, Outcome::Released)
            }
        };
        outcomes.push((group_kind(kind), outcome));
    }
    let is_failed = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Failed(_));
    if !outcomes.iter().any(is_failed) {
        take_finalizer(&katalogs, &object, katalog).await?;
        for (lease, state) in own {
            let state = (state.uid.as_str(), state.version.as_str());
            let dropped = leases.delete_exactly(CLAIMS_NAMESPACE, &lease, state).await;
            // Another client changed the claim first, and now owns it.
            dropped.or_else(|error| {
                if error.is_conflict() {
                    Ok(())
                } else {
                    Err(error)
                }
            })?;
        }
    }
    Ok(outcomes)
}

/// Returns the Katalog of an installation other than `installation` that has the kind, for display; none if no other has it.
///
/// # Errors
/// The API server refused, or did not answer.
pub async fn claimed_elsewhere(
    wire: &Wire,
    kind: &GroupKind,
    installation: &str,
    now: Timestamp,
) -> Result<Option<String>, CallError> {
    let leases = Resource::leases(wire);
    let Some(claim) = claim_of(&leases, &lease_of(kind)).await? else {
        return Ok(None);
    };
    let Claim {
        installation: holder,
        claimant,
        ..
    } = claim;
    if holder == installation {
        return Ok(None);
    }
    let own = names::installation_lease(&holder);
    let lease = leases.get(Some(CLAIMS_NAMESPACE), &own).await?;
    let renewed = match lease.and_then(|lease| Record::read(&lease)) {
        Some((_, Record::Heartbeat(heartbeat))) => heartbeat.renewed,
        _ => None,
    };
    let is_alive = renewed.is_some_and(|renewed| now.duration_since(renewed) < EXPIRY);
    Ok(is_alive.then(|| format!("{} of installation {holder}", claimant.katalog.titled())))
}

async fn claim_of(leases: &Resource, lease: &str) -> Result<Option<Claim>, CallError> {
    let found = leases.get(Some(CLAIMS_NAMESPACE), lease).await?;
    Ok(match found.and_then(|lease| Record::read(&lease)) {
        Some((_, Record::Claim(claim))) => Some(claim),
        _ => None,
    })
}

async fn take_finalizer(
    katalogs: &Resource,
    object: &KatalogObject,
    katalog: &KatalogRef,
) -> Result<(), CallError> {
    let mut finalizers = object.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|name| name != names::FINALIZER);
    let metadata = json!({ "uid": object.metadata.uid, "finalizers": finalizers });
    let patch = json!({ "metadata": metadata });
    let namespace = Some(katalog.namespace.as_str());
    match katalogs.merge(namespace, &katalog.name, &patch).await {
        // Its controller was first.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
        answer => answer.map(drop),
    }
}
