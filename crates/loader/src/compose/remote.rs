//! Sources of every kind that exists outside of a cluster.

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_compiler::compose::{Artifact, Lock, Locked, RequestKind, SourceRequest};
use orkestra_language::diagnostics::{Code, Diagnostic};
use orkestra_sources::{Document, Error, Fetcher, NoSecrets, Pin, Source};

use super::{ChartReference, DiskFiles, Fetch, Fetched};

/// Fetches files, artifacts of registries, Git repositories and charts; if there is a lock, in the revisions that it records.
#[derive(Clone)]
pub struct Remote {
    fetcher: Fetcher,
    lock: Option<Arc<Lock>>,
    ignores_locks: bool,
    config_maps: Arc<ConfigMaps>,
}

/// The key of a document that stands for whatever key a source names.
pub const ANY_KEY: &str = "";
/// The key of such a document if the source names none.
const DOCUMENT: &str = "katalog.yaml";

/// The data of `ConfigMaps`, by name.
pub type ConfigMaps = BTreeMap<String, BTreeMap<String, String>>;

impl Remote {
    /// Fetches for files: without Secrets, without a lock.
    pub fn new(fetcher: Fetcher) -> Self {
        Self {
            fetcher,
            lock: None,
            ignores_locks: false,
            config_maps: Arc::default(),
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

    /// Uses this data for `ConfigMaps`, which exist in a cluster only.
    #[must_use]
    pub fn with_config_maps(self, config_maps: ConfigMaps) -> Self {
        Self {
            config_maps: Arc::new(config_maps),
            ..self
        }
    }

    /// Returns the artifact of a `ConfigMap`. Its content is that of a file of the user, so no lock records it.
    fn config_map(&self, request: &SourceRequest, name: &str, key: Option<&str>) -> Fetched {
        let Some(data) = self.config_maps.get(name) else {
            let message = format!("the ConfigMap `{name}` exists in a cluster only");
            let problem = request.problem(Code::Unreadable, message);
            return Err(Box::new(problem.hint(format!(
                "name a file with its manifest, or with the document in it: `--source configmap/{name}=FILE`"
            ))));
        };
        let document = data.get(ANY_KEY).map(|text| {
            let key = key.unwrap_or(DOCUMENT).to_owned();
            BTreeMap::from([(key, text.clone())])
        });
        let artifact = Artifact::of_config_map(name, key, document.as_ref().unwrap_or(data));
        artifact.map(Arc::new).map_err(|why| {
            let problem = request.problem(Code::Unreadable, why);
            Box::new(problem.hint(format!(
                "`--source configmap/{name}=FILE` names its content"
            )))
        })
    }

    /// Returns what the lock records about a source.
    fn locked_as(&self, request: &SourceRequest) -> Option<&Locked> {
        self.lock.as_ref()?.sources.get(&request.id)
    }

    async fn fetched(&self, request: &SourceRequest, locked: Option<&Locked>) -> Fetched {
        if let RequestKind::ConfigMap { name, key } = &request.kind {
            return self.config_map(request, name, key.as_deref());
        }
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
            let id = chart.id();
            let lock = self.lock.as_ref();
            if lock.is_some_and(|lock| !lock.sources.contains_key(&id)) {
                return Err(format!("`{id}` is not locked: run `ork lock`"));
            }
            let ChartReference {
                repo,
                chart,
                version,
            } = chart;
            let fetched = self.fetcher.chart(repo, chart, version).await;
            let archive = fetched.map_err(|error| orkestra_ground::chain(&error))?;
            if let Some(lock) = lock {
                lock.check_chart(&id, &archive)?;
            }
            Ok(archive)
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
