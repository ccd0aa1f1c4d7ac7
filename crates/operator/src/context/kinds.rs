//! How the API server serves a kind.

use orkestra_cluster::requests::{ClusterError, Served};
use orkestra_plan::{GroupKind, ResourceType};

use super::Context;

impl Context {
    /// Returns how a kind is served, from the CRDs or else from discovery.
    ///
    /// # Errors
    /// The API server did not answer.
    pub(crate) async fn look_up(
        &self,
        kind: &GroupKind,
        declared: Option<&ResourceType>,
    ) -> Result<Option<Served>, ClusterError> {
        let crds = &self.crds;
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
            if let Some(served) = crate::served::built_in(kind, &declared.version) {
                return Ok(Some(served));
            }
            return self
                .cluster
                .discover(&kind.group, &declared.version, &kind.kind)
                .await;
        }
        for version in self.cluster.versions(&kind.group).await? {
            if let Some(served) = self
                .cluster
                .discover(&kind.group, &version, &kind.kind)
                .await?
            {
                return Ok(Some(served));
            }
        }
        Ok(None)
    }
}
