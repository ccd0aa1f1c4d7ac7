//! The controllers that run in a cluster, by the Leases with which installations claim kinds.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use orkestra_cluster::requests::{Cluster, ClusterError, Scope};
use orkestra_language::api::names;
use orkestra_object::value::Node;
use orkestra_plan::{GroupKind, rbac};
use serde::Serialize;

use super::{Error, objects::text};

/// The age at which the Lease of an installation counts as abandoned.
const ABANDONED: SignedDuration = SignedDuration::from_mins(6);

/// The version of a controller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ControllerVersion {
    /// The installation: namespace and name of its Lease for leader election.
    pub installation: String,
    /// The version and the commit of the replica that leads, as `1.2.3+COMMIT`; none if it is of a version that does not say it.
    pub version: Option<String>,
}

impl ControllerVersion {
    /// The namespace of the installation.
    pub(crate) fn namespace(&self) -> &str {
        let installation = self.installation.split_once('/');
        installation.map_or(&*self.installation, |(namespace, _)| namespace)
    }
}

/// `controller orkestra-system/orkestra has version 1.2.3+COMMIT`
impl fmt::Display for ControllerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "controller {} ", self.installation)?;
        match &self.version {
            Some(version) => write!(f, "has version {version}"),
            None => f.write_str("does not say its version"),
        }
    }
}

/// Returns the controllers that run at `now`: those that renew their Lease. Without permission to list Leases, none.
///
/// # Errors
/// The API server does not answer.
pub async fn controllers(
    cluster: &Cluster,
    now: Timestamp,
) -> Result<Vec<ControllerVersion>, Error> {
    let claims = Scope {
        namespace: Some(rbac::CLAIMS_NAMESPACE.to_owned()),
        ..Scope::default()
    };
    let mut running = Vec::new();
    for lease in list(cluster, "coordination.k8s.io/Lease", &claims).await? {
        let holder = text(&lease, &["spec", "holderIdentity"]).unwrap_or_default();
        let is_installation =
            text(&lease, &["metadata", "name"]) == Some(&names::installation_lease(holder));
        let renewed =
            text(&lease, &["spec", "renewTime"]).and_then(|time| time.parse::<Timestamp>().ok());
        let is_alive = renewed.is_some_and(|renewed| now.duration_since(renewed) < ABANDONED);
        if is_installation && is_alive {
            running.push(ControllerVersion {
                installation: holder.to_owned(),
                version: lease
                    .annotation(names::ANNOTATION_VERSION)
                    .map(str::to_owned),
            });
        }
    }
    Ok(running)
}

/// Lists objects of a built-in kind, `group/Kind`; without the permission, none.
pub(crate) async fn list(cluster: &Cluster, kind: &str, scope: &Scope) -> Result<Vec<Node>, Error> {
    let (group, name) = kind.split_once('/').unwrap_or(("", kind));
    let kind = GroupKind {
        group: group.into(),
        kind: name.into(),
    };
    let Some(served) = orkestra_operator::served::built_in(&kind, "v1") else {
        return Ok(Vec::new());
    };
    match cluster.list_page(&served, scope, 0, None).await {
        Ok(page) => Ok(page.items),
        Err(
            ClusterError::Forbidden { .. } | ClusterError::NotFound(_) | ClusterError::NotServed(_),
        ) => Ok(Vec::new()),
        Err(error) => Err(Error::request("list", name)(error)),
    }
}
