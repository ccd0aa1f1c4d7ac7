//! The meta-controller: Katalogs in, running operators out.
//!
//! ```text
//!  Katalog CRs ──┐
//!                ├─ parse, compile ─► revision stored ─► supervisor: claims, diff ─► start / reconfigure / stop
//!  files ────────┘        │                                   │
//!                         └─ diagnostics ──► Katalog status ◄─┴─ each operator's status
//! ```
//!
//! This module knows nothing about the work of operators; [`orkestra_operator`] knows nothing about Katalogs.

mod calls;
mod claims;
mod directory;
mod failures;
mod feed;
mod files;
mod history;
mod katalog;
mod known;
mod ledger;
mod manual_release;
mod motifs;
mod object;
mod release;
mod revisions;
mod sources;
mod status;
mod stopped;
mod supervisor;
#[cfg(test)]
mod testing;
mod watched;

use std::{sync::Arc, time::Duration};

use orkestra_ground::tasks::{self, Ends, Task};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::{
    calls::RequestError,
    claims::Seniority,
    directory::{
        Directory, InForce, KatalogInfo, KatalogView, OperatorView, Publisher, Readiness,
        SourceView,
    },
    files::{AppliedObject, FileError, KatalogFiles, Notice, compile_files},
    history::{AcceptedRevision, History, HistoryError, history, operating},
    manual_release::{LetGoError, ReleaseOutcome, claimed_elsewhere, release_katalog},
    release::{ReleaseError, ReleaseProgress, Released, operated, release_kind},
    sources::{ClusterFetch, FetchError, FetchExternal, NoFetch, Secret, Secrets},
    watched::Namespaces,
};
pub use self::{
    calls::ServedResource,
    files::{apply_manifest, manifests, wait_for},
    katalog::{Declares, Examined, examine_katalog, examine_motif, kinds_declared},
};
use self::{
    claims::Keeper, katalog::ControllerContext, ledger::Ledger, sources::SourceContext,
    supervisor::Supervisor,
};
use orkestra_operator::context::Context;

/// How long to wait for the first list of CRDs.
const CRDS_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for the first list of claims.
const CLAIMS_PATIENCE: Duration = Duration::from_secs(5);
/// How long dropping the claims may take at shutdown.
const FAREWELL: Duration = Duration::from_secs(5);
/// How long to wait for the first list of Motifs.
const MOTIFS_PATIENCE: Duration = Duration::from_secs(5);
/// The divisor of the shutdown time that Katalogs get to finish their work; operators get the rest.
const FEED_SHARE: u32 = 4;

/// The source of Katalogs.
#[derive(Debug)]
pub enum Feed {
    /// From the cluster, as custom resources.
    Cluster(Namespaces),
    /// From files.
    Files(KatalogFiles),
}

/// The installation that claims kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installation {
    /// The same for all processes of an installation, and after their restarts; unique in the cluster.
    pub name: Arc<str>,
    /// Whether its claims outlive the process: another process of the installation continues with them.
    pub long_running: bool,
}

impl Installation {
    /// That of Katalog files which the command `command` runs: the same for the next run of them on this machine, so that it
    /// continues with the claims of one that was killed.
    pub fn of_files(command: &str, paths: &[std::path::PathBuf]) -> Self {
        let whole = |path: &std::path::PathBuf| {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
            path.display().to_string()
        };
        let whole: Vec<String> = paths.iter().map(whole).collect();
        let mut hash = orkestra_object::value::hash_text(&whole.join("\n"));
        hash.truncate(10);
        Self {
            name: format!(
                "{command} on {} ({hash})",
                orkestra_cluster::leader_election::host()
            )
            .into(),
            long_running: false,
        }
    }
}

/// The engine: Katalogs in, operators running.
#[derive(Debug)]
pub struct Runtime {
    shared: Arc<ControllerContext>,
    directory: Directory,
    installation: Installation,
}

impl Runtime {
    /// Creates an engine that runs nothing yet. By default it is its own installation.
    pub fn new(context: Arc<Context>) -> Self {
        Self::with(context, Ledger::default())
    }

    /// Creates an engine that runs no operators, claims no kinds and writes nothing: its [`Directory`] shows which Katalogs the
    /// cluster has, what they declare, and what of it is in force.
    pub fn observing(context: Arc<Context>) -> Self {
        Self::with(context, Ledger::observing())
    }

    fn with(context: Arc<Context>, ledger: Ledger) -> Self {
        let (publisher, directory) = Publisher::new();
        let (synced, is_synced) = watch::channel(false);
        let observes = ledger.observes();
        let supervisor = Supervisor::new(Arc::clone(&context), ledger, is_synced);
        let name = Arc::clone(context.leadership.identity());
        let sources = Arc::new(SourceContext::new(Arc::clone(&context)));
        Self {
            installation: Installation {
                name,
                long_running: false,
            },
            shared: Arc::new(ControllerContext {
                context,
                observes,
                supervisor,
                motifs: Arc::new(motifs::Motifs::new()),
                sources,
                publisher,
                synced,
            }),
            directory,
        }
    }

    /// Sets what fetches the sources of Komposers from outside of the cluster; by default nothing does.
    #[must_use]
    pub fn fetching(mut self, fetch: Arc<dyn FetchExternal>) -> Self {
        if let Some(shared) = Arc::get_mut(&mut self.shared)
            && let Some(sources) = Arc::get_mut(&mut shared.sources)
        {
            sources.fetch = fetch;
        }
        self
    }

    /// Sets the installation.
    #[must_use]
    pub fn of(mut self, installation: Installation) -> Self {
        self.installation = installation;
        self
    }

    /// True once all Katalogs that existed at the start are known, and run as far as they can.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.shared.synced.subscribe()
    }

    /// Returns the directory of running Katalogs.
    pub fn directory(&self) -> Directory {
        self.directory.clone()
    }

    /// Runs what `feed` declares until `shutdown`; then stops, in order and within `patience`: no new revisions, no new
    /// passes, writes in flight end. Operators that do not stop in time are logged, with their unfinished work, and
    /// abandoned. Returns true if the last write has ended, false if operators were abandoned.
    ///
    /// While another process leads, everything is prepared and nothing is written.
    ///
    /// # Errors
    /// [`FileError`] if files cannot run when they are first read; a later error keeps the last good revision.
    pub async fn run(
        self,
        feed: Feed,
        shutdown: CancellationToken,
        patience: Duration,
    ) -> Result<bool, FileError> {
        let Self {
            shared,
            directory: _,
            installation,
        } = self;
        let mut keeper = Box::new(Keeper::new(
            Arc::clone(&shared.context),
            installation.name,
            shared.supervisor.demand(),
            shared.supervisor.standings().clone(),
        ));
        keeper.observes = shared.observes;
        let feeding = async {
            tokio::select! {
                ended = follow(&shared, feed, &shutdown) => ended,
                () = stand_duty(&shared) => Ok(()),
                () = keep_claims(&mut keeper) => Ok(()),
            }
        };
        let followed = bounded(feeding, &shutdown, patience / FEED_SHARE).await;
        let rest = patience.saturating_sub(patience / FEED_SHARE);
        let finished = shared.supervisor.close(rest).await;
        // No other installation may take over a kind while a write is in flight.
        if finished && !installation.long_running && !shared.observes {
            let _ = tokio::time::timeout(FAREWELL, Box::pin(keeper.end())).await;
        }
        match followed {
            Some(ended) => ended.map(|()| finished),
            None => Ok(false),
        }
    }
}

/// Keeps the claims on kinds; never returns.
async fn keep_claims(keeper: &mut Keeper) {
    let claims = tasks::named(Task::Claims, "");
    claims
        .kept(Ends::never(), keeper, |keeper| Box::pin(keeper.run()))
        .await;
}

/// Starts and stops the work of operators as this process leads or not; never returns.
async fn stand_duty(shared: &Arc<ControllerContext>) {
    let duty = tasks::named(Task::Duty, "");
    duty.kept(Ends::never(), Arc::clone(shared), |shared| {
        Box::pin(shared.supervisor.follow_leadership())
    })
    .await;
}

/// Follows `feed` until `shutdown`, and until its tasks have ended.
async fn follow(
    shared: &Arc<ControllerContext>,
    feed: Feed,
    shutdown: &CancellationToken,
) -> Result<(), FileError> {
    // Katalogs compile without CRDs, and are compiled again as CRDs become known.
    if tokio::time::timeout(CRDS_PATIENCE, shared.context.crds.synced())
        .await
        .is_err()
    {
        tracing::warn!("CRDs are not listed yet");
    }
    // The claims held before a restart decide what may be released.
    let mut standings = shared.supervisor.standings().subscribe();
    let listed = standings.wait_for(|standings| standings.listed);
    if tokio::time::timeout(CLAIMS_PATIENCE, listed).await.is_err() {
        tracing::warn!("claims on kinds are not listed yet");
    }
    let namespaces = match feed {
        Feed::Files(files) => {
            let followed = files.follow(shared, shutdown);
            let followed = tasks::named(Task::Files, "").needed(followed).await;
            return followed.unwrap_or(Ok(()));
        }
        Feed::Cluster(namespaces) => namespaces,
    };
    let (motifs, context) = (Arc::clone(&shared.motifs), Arc::clone(&shared.context));
    let motifs = motifs::follow(motifs, context, &namespaces, shutdown.clone());
    let katalogs = async {
        // A Katalog must not be refused for a missing Motif while the Motifs are not known yet.
        let listed = shared.motifs.listed();
        if tokio::time::timeout(MOTIFS_PATIENCE, listed).await.is_err() {
            tracing::warn!("Motifs are not listed yet");
        }
        feed::follow(Arc::clone(shared), &namespaces, shutdown.clone()).await;
    };
    tokio::join!(motifs, katalogs);
    Ok(())
}

/// Runs `feed` to its end, which may come no later than `patience` after `shutdown`; none if it would take longer.
async fn bounded<T>(
    feed: impl Future<Output = T>,
    shutdown: &CancellationToken,
    patience: Duration,
) -> Option<T> {
    let late = async {
        shutdown.cancelled().await;
        tokio::time::sleep(patience).await;
    };
    tokio::select! {
        ended = feed => Some(ended),
        () = late => {
            tracing::warn!("Katalogs did not stop in time");
            None
        }
    }
}
