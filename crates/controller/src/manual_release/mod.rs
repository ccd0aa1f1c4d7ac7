//! Manual releases: `ork release`, if no controller does it.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;
use orkestra_cluster::requests::Cluster;
use orkestra_language::api::{OperatedKind, names};
use orkestra_plan::{GroupKind, KatalogRef, rbac::CLAIMS_NAMESPACE};
use serde_json::json;

use super::{
    calls::{RequestError, ServedResource},
    claims::{Claim, EXPIRY, LeaseContent, ObjectVersion, lease_of},
    katalog::kinds_stored,
    object::KatalogObject,
    release::{ReleaseError, ReleaseProgress, Released, group_kind, release_kind},
    revisions::Revisions,
};

/// How long a forced release of a kind may take: a webhook that does not answer delays each of its objects.
const FORCED: Duration = Duration::from_mins(1);

/// The result for one kind of a Katalog.
#[derive(Debug)]
pub enum ReleaseOutcome {
    /// It was released.
    Released(Released),
    /// The named other Katalog or Komposer has the kind.
    Claimed(String),
    /// The status names it, without any other proof that the Katalog operated it: neither a claim nor a stored revision.
    Unproven,
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
    Call(#[from] RequestError),
}

/// Releases the kinds that a Katalog under deletion operated, one by one, and then the Katalog: without `force` only if no kind
/// failed. With `force` a kind that is not released within a minute fails.
///
/// # Errors
/// [`LetGoError`]; a kind that could not be released is reported in its [`ReleaseOutcome`].
pub async fn release_katalog(
    cluster: &Cluster,
    katalog: &KatalogRef,
    force: bool,
) -> Result<Vec<(GroupKind, ReleaseOutcome)>, LetGoError> {
    let katalogs = ServedResource::declaring(cluster, katalog.kind);
    let namespace = Some(katalog.namespace.as_str());
    let found = katalogs.get(namespace, &katalog.name).await?;
    let object = found.ok_or_else(|| LetGoError::NotFound(katalog.clone()))?;
    let object = KatalogObject::new(object);
    if object.metadata.deletion_timestamp.is_none() {
        let katalog = katalog.clone();
        return Err(LetGoError::NotDeleted { katalog });
    }
    let uid = object.metadata.uid.clone().unwrap_or_default();
    let mut release = ManualRelease {
        cluster,
        leases: ServedResource::leases(cluster),
        revisions: Revisions::new(cluster, katalog, &uid),
        uid,
        limit: force.then_some(FORCED),
        declared: None,
        own: Vec::new(),
    };
    let mut outcomes = Vec::new();
    for kind in &object.status.operated {
        let outcome = release.release(kind).await;
        outcomes.push((
            group_kind(kind),
            outcome.unwrap_or_else(ReleaseOutcome::Failed),
        ));
    }
    let is_failed =
        |(_, outcome): &(_, ReleaseOutcome)| matches!(outcome, ReleaseOutcome::Failed(_));
    if force || !outcomes.iter().any(is_failed) {
        take_finalizer(&katalogs, &object, katalog).await?;
        for (kind, error) in release.drop_claims().await {
            if !force {
                return Err(error.into());
            }
            outcomes.push((kind, ReleaseOutcome::Failed(error.into())));
        }
    }
    Ok(outcomes)
}

/// The release of the kinds of one Katalog.
struct ManualRelease<'a> {
    cluster: &'a Cluster,
    leases: ServedResource,
    revisions: Revisions,
    /// The uid of the Katalog.
    uid: String,
    /// How long the release of a kind may take.
    limit: Option<Duration>,
    /// The kinds that stored revisions of the Katalog name; none before they were read.
    declared: Option<BTreeSet<GroupKind>>,
    /// The claims of the Katalog.
    own: Vec<(GroupKind, ObjectVersion)>,
}

impl ManualRelease<'_> {
    /// Releases a kind, if there is proof beside the status, which other clients may write, that the Katalog operated it.
    async fn release(&mut self, kind: &OperatedKind) -> Result<ReleaseOutcome, ReleaseError> {
        let of = group_kind(kind);
        match claim_of(&self.leases, &lease_of(&of)).await? {
            Some(claim) if claim.claimant.uid != self.uid => {
                return Ok(ReleaseOutcome::Claimed(claim.claimant.katalog.titled()));
            }
            Some(claim) => self.own.push((of, claim.state)),
            None if self.declares(&of).await? => {}
            None => return Ok(ReleaseOutcome::Unproven),
        }
        let progress = ReleaseProgress::default();
        let releasing = release_kind(self.cluster, kind, &progress);
        let released = match self.limit {
            None => releasing.await?,
            Some(limit) => tokio::time::timeout(limit, releasing)
                .await
                .map_err(|_| ReleaseError::Late(limit))??,
        };
        Ok(ReleaseOutcome::Released(released))
    }

    async fn declares(&mut self, kind: &GroupKind) -> Result<bool, RequestError> {
        if self.declared.is_none() {
            let revisions = self.revisions.list().await?;
            self.declared = Some(revisions.iter().flat_map(kinds_stored).collect());
        }
        Ok(self.declared.iter().flatten().any(|known| known == kind))
    }

    /// Deletes the claims of the Katalog; returns those that could not be deleted.
    async fn drop_claims(self) -> Vec<(GroupKind, RequestError)> {
        let mut left = Vec::new();
        for (kind, state) in self.own {
            let lease = lease_of(&kind);
            let state = (state.uid.as_str(), state.version.as_str());
            let dropped = self
                .leases
                .delete_exactly(CLAIMS_NAMESPACE, &lease, state)
                .await;
            match dropped {
                // After a conflict, another client changed the claim first, and now owns it.
                Err(error) if !error.is_conflict() => left.push((kind, error)),
                _ => {}
            }
        }
        left
    }
}

/// Returns the Katalog of an installation other than `installation` that has the kind, for display; none if no other has it.
///
/// # Errors
/// The API server refused, or did not answer.
pub async fn claimed_elsewhere(
    cluster: &Cluster,
    kind: &GroupKind,
    installation: &str,
    now: Timestamp,
) -> Result<Option<String>, RequestError> {
    let leases = ServedResource::leases(cluster);
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
    let renewed = match lease.and_then(|lease| LeaseContent::read(&lease)) {
        Some((_, LeaseContent::Heartbeat(heartbeat))) => heartbeat.renewed,
        _ => None,
    };
    let is_alive = renewed.is_some_and(|renewed| now.duration_since(renewed) < EXPIRY);
    Ok(is_alive.then(|| format!("{} of installation {holder}", claimant.katalog.titled())))
}

async fn claim_of(leases: &ServedResource, lease: &str) -> Result<Option<Claim>, RequestError> {
    let found = leases.get(Some(CLAIMS_NAMESPACE), lease).await?;
    Ok(match found.and_then(|lease| LeaseContent::read(&lease)) {
        Some((_, LeaseContent::Claim(claim))) => Some(claim),
        _ => None,
    })
}

async fn take_finalizer(
    katalogs: &ServedResource,
    object: &KatalogObject,
    katalog: &KatalogRef,
) -> Result<(), RequestError> {
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

#[cfg(test)]
mod tests;
