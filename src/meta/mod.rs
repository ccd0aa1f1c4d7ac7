//! The meta-controller: Katalogs in, running operators out.
//!
//! ```text
//!  Katalog CRs ──┐
//!                ├─ parse, compile ─► revision stored ─► supervisor: claims, diff ─► start / reconfigure / stop
//!  files ────────┘        │                                   │
//!                         └─ diagnostics ──► Katalog status ◄─┴─ each operator's status
//! ```
//!
//! Nothing here knows what an operator does; [`crate::runtime`] knows nothing of Katalogs.

mod calls;
mod claims;
mod directory;
mod feed;
mod files;
mod katalog;
mod ledger;
mod motifs;
mod release;
mod revisions;
mod status;
mod supervisor;
#[cfg(test)]
mod testing;

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

pub use self::{
    calls::CallError,
    claims::Seniority,
    directory::{About, Directory, KatalogView, OperatorView, Publisher, Readiness},
    feed::Namespaces,
    files::{FileError, Files, Notice, compile_files},
    release::{ReleaseError, Released, operated, release_kind},
};
use self::{katalog::Shared, supervisor::Supervisor};
use crate::runtime::context::Context;

/// How long the first list of CRDs is waited for.
const CRDS_PATIENCE: Duration = Duration::from_secs(5);
/// How long the first list of Motifs is waited for.
const MOTIFS_PATIENCE: Duration = Duration::from_secs(5);
/// How long Katalogs may take to end what they are at, once a shutdown was asked for.
const FEED_PATIENCE: Duration = Duration::from_secs(5);
/// How long operators may take to finish their writes after that.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Where Katalogs come from.
#[derive(Debug)]
pub enum Feed {
    /// From the cluster, as custom resources.
    Cluster(Namespaces),
    /// From files.
    Files(Files),
}

/// The engine: Katalogs in, operators running.
#[derive(Debug)]
pub struct Runtime {
    shared: Arc<Shared>,
    directory: Directory,
}

impl Runtime {
    /// An engine that runs nothing yet.
    pub fn new(context: Arc<Context>) -> Self {
        let (publisher, directory) = Publisher::new();
        let supervisor = Supervisor::new(Arc::clone(&context));
        let (synced, _) = watch::channel(false);
        Self {
            shared: Arc::new(Shared {
                context,
                supervisor,
                motifs: motifs::Motifs::new(),
                publisher,
                synced,
            }),
            directory,
        }
    }

    /// True once all Katalogs that were there at the start are known, and run as far as they can.
    pub fn synced(&self) -> watch::Receiver<bool> {
        self.shared.synced.subscribe()
    }

    /// What runs, for readers.
    pub fn directory(&self) -> Directory {
        self.directory.clone()
    }

    /// Runs what `feed` declares until `shutdown`; then stops, in order and within 20 s: no new revisions, no new
    /// passes, writes in flight end. Operators that do not stop in time are logged and left behind.
    ///
    /// # Errors
    /// [`FileError`] when files cannot run at their first reading; a later one keeps the last good revision.
    pub async fn run(self, feed: Feed, shutdown: CancellationToken) -> Result<(), FileError> {
        let Self {
            shared,
            directory: _,
        } = self;
        // Katalogs compile without, and are compiled anew as CRDs become known.
        if tokio::time::timeout(CRDS_PATIENCE, shared.context.crds.synced())
            .await
            .is_err()
        {
            tracing::warn!("CRDs are not known yet");
        }
        let ended = match feed {
            Feed::Cluster(namespaces) => {
                let motifs = motifs::follow(Arc::clone(&shared), &namespaces, shutdown.clone());
                let katalogs = async {
                    // A Katalog must not be told that there is no Motif when it is only not known yet.
                    let listed = shared.motifs.listed();
                    if tokio::time::timeout(MOTIFS_PATIENCE, listed).await.is_err() {
                        tracing::warn!("Motifs are not known yet");
                    }
                    feed::follow(Arc::clone(&shared), &namespaces, shutdown.clone()).await;
                };
                let both = async {
                    tokio::join!(motifs, katalogs);
                };
                bounded(both, &shutdown).await;
                Ok(())
            }
            Feed::Files(files) => files.follow(&shared, &shutdown).await,
        };
        shared.supervisor.close(STOP_PATIENCE).await;
        ended
    }
}

/// Runs `feed` to its end, which may come no later than [`FEED_PATIENCE`] after `shutdown`.
async fn bounded(feed: impl Future<Output = ()>, shutdown: &CancellationToken) {
    let late = async {
        shutdown.cancelled().await;
        tokio::time::sleep(FEED_PATIENCE).await;
    };
    tokio::select! {
        () = feed => {}
        () = late => tracing::warn!("Katalogs did not end in time"),
    }
}
