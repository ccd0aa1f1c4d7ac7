//! Sources outside of the cluster, fetched by `orkestra-sources`.

use std::{fmt, sync::Arc};

use futures::future::BoxFuture;
use orkestra_compiler::compose::{Artifact, SourceRequest};
use orkestra_sources::Fetcher;

use super::{FetchError, FetchExternal, Secrets};

/// Fetches what its guard permits.
#[derive(Clone)]
pub struct ClusterFetch(
    /// The fetcher.
    pub Fetcher,
);

impl fmt::Debug for ClusterFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterFetch")
    }
}

/// The Secrets that a source names, which were read before.
struct Given<'a>(&'a Secrets);

impl orkestra_sources::Secrets for Given<'_> {
    fn secret<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<orkestra_sources::Secret, String>> {
        let Secrets { auth, verify } = self.0;
        let mut all = auth.iter().chain(verify);
        let found = all.find(|secret| secret.name == name);
        let found = found.map(|secret| orkestra_sources::Secret {
            type_: secret.type_.clone(),
            data: secret.data.clone(),
        });
        let found = found.ok_or_else(|| format!("Secret {name} is not known"));
        Box::pin(std::future::ready(found))
    }
}

impl FetchExternal for ClusterFetch {
    fn fetch<'a>(
        &'a self,
        request: &'a SourceRequest,
        secrets: &'a Secrets,
    ) -> BoxFuture<'a, Result<Arc<Artifact>, FetchError>> {
        Box::pin(async move {
            let secrets = Given(secrets);
            let fetched = self.0.request(request, &secrets, None).await;
            fetched.map_err(|error| FetchError {
                message: error.to_string(),
                permanent: error.is_permanent(),
            })
        })
    }
}
