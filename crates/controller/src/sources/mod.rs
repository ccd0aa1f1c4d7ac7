//! The sources of a Komposer, fetched off the path of its reconciliation.
//!
//! ```text
//!  Komposer ── requests ──► KomposerSources (a task) ── due ──► FetchExternal: HTTPS, registry, Git, chart (with a Secret by name)
//!      ▲                        │            ├─ watch ──► ConfigMaps by name
//!      │                        │            └─ known ──► suspended Katalogs of its namespace
//!      └── artifacts, problems ◄┘
//! ```
//!
//! Each source has its own interval and its own backoff. A source that fails keeps its last artifact.

mod config_maps;
mod fetching;
mod following;
pub(crate) mod katalogs;
mod remote;
mod schedule;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc};

use futures::future::BoxFuture;
use orkestra_compiler::{
    compilation::Unapproved,
    compose::{Artifact, Artifacts, RequestKind, SourceRecord, SourceRequest},
};
use orkestra_ground::tasks::{self, Ends, Task};
use orkestra_language::{api::SourceStatus, reasons::KatalogReason};
use orkestra_plan::KatalogRef;
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::remote::ClusterFetch;
use self::{following::SourceFollower, katalogs::Katalogs};
use orkestra_operator::context::Context;

/// How many sources are fetched at a time.
const FETCHES: usize = 8;

/// What the sources of all Komposers of a process are read with.
#[derive(Debug)]
pub(crate) struct SourceContext {
    /// Informers, client, clock, entropy, metrics.
    runtime: Arc<Context>,
    /// The Katalogs that Komposers take as sources.
    pub(crate) katalogs: Katalogs,
    /// Fetches the other sources.
    pub(crate) fetch: Arc<dyn FetchExternal>,
    /// Limits concurrent fetches.
    fetches: Semaphore,
}

impl SourceContext {
    /// Creates one that fetches nothing from outside of the cluster.
    pub(crate) fn new(runtime: Arc<Context>) -> Self {
        Self {
            runtime,
            katalogs: Katalogs::new(),
            fetch: Arc::new(NoFetch),
            fetches: Semaphore::new(FETCHES),
        }
    }
}

/// Fetches sources from outside of the cluster.
pub trait FetchExternal: Send + Sync + fmt::Debug {
    /// Fetches one source with the Secrets that it names.
    fn fetch<'a>(
        &'a self,
        request: &'a SourceRequest,
        secrets: &'a Secrets,
    ) -> BoxFuture<'a, Result<Arc<Artifact>, FetchError>>;
}

/// The Secrets that a source names.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// That of `auth`.
    pub auth: Option<Secret>,
    /// Those of `verify`: public keys, and a trusted root.
    pub verify: Vec<Secret>,
}

/// A Secret of the cluster. Its data is never displayed.
#[derive(Clone)]
pub struct Secret {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: String,
    /// Its data, decoded.
    pub data: BTreeMap<String, Vec<u8>>,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.name)
    }
}

/// Why a source could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FetchError {
    /// The reason, without secrets.
    pub message: String,
    /// Whether only a change of the source or of the flags of the runtime helps.
    pub permanent: bool,
}

/// Fetches nothing: the fetcher of a runtime that permits no host.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFetch;

impl FetchExternal for NoFetch {
    fn fetch<'a>(
        &'a self,
        _: &'a SourceRequest,
        _: &'a Secrets,
    ) -> BoxFuture<'a, Result<Arc<Artifact>, FetchError>> {
        let refused = FetchError {
            message: "sources outside of the cluster are not permitted: the runtime has no `--source-allow`"
                .to_owned(),
            permanent: true,
        };
        Box::pin(std::future::ready(Err(refused)))
    }
}

/// What is known about one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FetchedSource {
    /// The newest artifact.
    pub(crate) artifact: Option<Arc<Artifact>>,
    /// Why the last fetch failed; none if it succeeded.
    pub(crate) problem: Option<FetchError>,
}

/// What is known about the sources, by the identity of their requests.
pub(crate) type FetchedSources = Arc<BTreeMap<String, FetchedSource>>;

/// The sources of one Komposer. Dropping it ends its task.
#[derive(Debug)]
pub(crate) struct KomposerSources {
    wanted: watch::Sender<Arc<WantedSources>>,
    known: watch::Receiver<FetchedSources>,
    _stop: DropGuard,
}

/// The wanted sources.
#[derive(Clone, Debug, Default, PartialEq)]
struct WantedSources {
    requests: Vec<SourceRequest>,
    /// A change of it fetches all sources at once.
    requested: Option<String>,
}

impl KomposerSources {
    /// Starts the task of a Komposer.
    pub(crate) fn start(context: &Arc<SourceContext>, of: &KatalogRef) -> Self {
        let stop = CancellationToken::new();
        let (wanted, wants) = watch::channel(Arc::default());
        let (sender, known) = watch::channel(FetchedSources::default());
        let following = SourceFollower::new(Arc::clone(context), of.clone(), wants, sender);
        let named = tasks::named(Task::Sources, of);
        drop(named.keep(
            Ends::with(&stop),
            (following, stop.clone()),
            |(following, stop)| {
                Box::pin(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        () = following.run() => {}
                    }
                })
            },
        ));
        Self {
            wanted,
            known,
            _stop: stop.drop_guard(),
        }
    }

    /// Sets the wanted sources; others are forgotten. A change of `requested` fetches all of them at once.
    pub(crate) fn want(&self, requests: Vec<SourceRequest>, requested: Option<String>) {
        let wanted = WantedSources {
            requests,
            requested,
        };
        self.wanted.send_if_modified(|before| {
            let differs = **before != wanted;
            if differs {
                *before = Arc::new(wanted);
            }
            differs
        });
    }

    /// Returns what is known now.
    pub(crate) fn known(&self) -> FetchedSources {
        Arc::clone(&self.known.borrow())
    }

    /// Returns when more is known than at the last return.
    pub(crate) async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            // The task ends with the process only.
            std::future::pending::<()>().await;
        }
    }
}

/// The sources of a composition as its status reports them.
#[derive(Debug, Default)]
pub(crate) struct SourceReport {
    pub(crate) rows: Vec<SourceStatus>,
    /// The most severe problem.
    pub(crate) problem: Option<(KatalogReason, String)>,
}

/// Describes sources: `requests` in their order, the artifacts that run, what is known, and revisions that wait for approval.
pub(crate) fn report(
    requests: &[SourceRequest],
    running: &Artifacts,
    known: &BTreeMap<String, FetchedSource>,
    unapproved: &[Unapproved],
) -> SourceReport {
    let mut reported = SourceReport::default();
    for request in requests {
        let id = &request.id;
        let mut row = match running.get(id) {
            Some(artifact) => SourceRecord::of(id, artifact).row(),
            None => SourceStatus {
                source: id.clone(),
                ..SourceStatus::default()
            },
        };
        if let Some(waiting) = unapproved.iter().find(|one| one.source == *id) {
            row.message = waiting.to_string();
            reported.problem = Some((KatalogReason::PendingApproval, waiting.to_string()));
        }
        if let Some(problem) = known.get(id).and_then(|known| known.problem.as_ref()) {
            row.message.clone_from(&problem.message);
            let message = format!("source {id} cannot be fetched: {problem}");
            reported.problem = Some((KatalogReason::SourceFailed, message));
        }
        reported.rows.push(row);
    }
    // Motifs have no row.
    let mut motifs = unapproved.iter().filter(|one| one.motif().is_some());
    if let Some(waiting) = motifs.next().filter(|_| reported.problem.is_none()) {
        reported.problem = Some((KatalogReason::PendingApproval, waiting.to_string()));
    }
    reported
}

/// True if a source is of the cluster itself.
pub(crate) fn is_in_cluster(kind: &RequestKind) -> bool {
    matches!(
        kind,
        RequestKind::ConfigMap { .. } | RequestKind::Katalogs { .. }
    )
}
