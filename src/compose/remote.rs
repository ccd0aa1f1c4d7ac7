//! Sources of every kind that exists outside of a cluster.

use std::{fmt, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_core::{
    compose::{Artifact, Lock, Locked, RequestKind, SourceRequest},
    diagnostics::{Code, Diagnostic},
};
use orkestra_sources::{Document, Error, Fetcher, NoSecrets, Pin, Source};

use super::{ChartReference, DiskFiles, Fetch, Fetched};

/// Fetches files, artifacts of registries, Git repositories and charts; if there is a lock, in the revisions that it records.
#[derive(Clone)]
pub struct Remote {
    fetcher: Fetcher,
    lock: Option<Arc<Lock>>,
    ignores_locks: bool,
}

impl Remote {
    /// Fetches for files: without Secrets, without a lock.
    pub fn new(fetcher: Fetcher) -> Self {
        Self {
            fetcher,
            lock: None,
            ignores_locks: false,
        }
    }

    /// Requires that every source has the digest that the lock records.
    #[must_use]
    pub fn locked(self, lock: Lock) -> Self {
        Self {
            lock: Some(Arc::new(lock)),
            ..self
        }
    }

    /// Fetches sources as they are now, even if a composition requires a lock.
    #[must_use]
    pub fn ignoring_locks(self) -> Self {
        Self {
            ignores_locks: true,
            ..self
        }
    }

    /// Returns what the lock records about a source.
    fn locked_as(&self, request: &SourceRequest) -> Option<&Locked> {
        self.lock.as_ref()?.sources.get(&request.id)
    }

    async fn fetched(&self, request: &SourceRequest, locked: Option<&Locked>) -> Fetched {
        let fetched = if let RequestKind::File { .. } = &request.kind {
            DiskFiles.fetch(request).await?
        } else {
            // Without a revision, as from `spec.locked`, the source is fetched as it is and compared.
            let pin = locked.map(|locked| Pin {
                revision: locked.revision.clone(),
                digest: locked.digest.clone(),
            });
            let fetching = self.fetcher.request(request, &NoSecrets, pin.as_ref());
            fetching
                .await
                .map_err(|error| Box::new(problem(request, &error)))?
        };
        let unlocked = self
            .lock
            .as_ref()
            .and_then(|lock| lock.check(request, &fetched, true));
        match unlocked {
            Some(problem) => Err(Box::new(problem)),
            None => Ok(fetched),
        }
    }
}

impl Fetch for Remote {
    fn motif<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Arc<Artifact>, String>> {
        async move {
            if self.lock.is_some() && !reference.contains("@sha256:") {
                return Err(format!(
                    "`{reference}` is not locked: name its digest, as in `oci://host/path@sha256:…`"
                ));
            }
            let source = Source::Registry {
                reference: reference.to_owned(),
                document: Document::Motif,
                verify: None,
            };
            let fetched = self.fetcher.fetch(&source, None, None).await;
            fetched.map_err(|error| {
                let chain = orkestra_ground::chain(&error);
                format!("`{reference}` cannot be fetched: {chain}")
            })
        }
        .boxed()
    }

    fn chart<'a>(&'a self, chart: ChartReference<'a>) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        async move {
            let ChartReference {
                repo,
                chart,
                version,
            } = chart;
            let fetched = self.fetcher.chart(repo, chart, version).await;
            fetched.map_err(|error| orkestra_ground::chain(&error))
        }
        .boxed()
    }

    fn fetch<'a>(&'a self, request: &'a SourceRequest) -> BoxFuture<'a, Fetched> {
        self.fetched(request, self.locked_as(request)).boxed()
    }

    fn fetch_locked<'a>(
        &'a self,
        request: &'a SourceRequest,
        locked: &'a Locked,
    ) -> BoxFuture<'a, Fetched> {
        let own = self.locked_as(request);
        self.fetched(request, Some(own.unwrap_or(locked))).boxed()
    }

    fn ignores_locks(&self) -> bool {
        self.ignores_locks
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote")
            .field("lock", &self.lock)
            .finish_non_exhaustive()
    }
}

/// The problem of a source, at its place.
fn problem(request: &SourceRequest, error: &Error) -> Diagnostic {
    let chain = orkestra_ground::chain(error);
    let problem = request.problem(Code::Unreadable, format!("cannot be fetched: {chain}"));
    match error {
        Error::Mismatch { .. } => problem.hint(
            "if the new content is wanted, run `ork lock` and review the change with `ork diff`",
        ),
        _ => problem,
    }
}
