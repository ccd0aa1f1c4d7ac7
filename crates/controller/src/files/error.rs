//! Why files cannot run.

use std::time::Duration;

use orkestra_language::diagnostics::Diagnostics;
use orkestra_plan::{GroupKind, KatalogRef};

use crate::calls::RequestError;

/// Why files cannot run.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A chart of `setup.helm` cannot be rendered.
    #[error("chart {chart}: {source}")]
    Chart {
        /// The chart, as the Katalog names it.
        chart: String,
        /// The cause.
        source: Box<orkestra_charts::Error>,
    },
    /// A chart of `setup.helm` cannot be fetched.
    #[error("chart {chart} cannot be fetched: {why}")]
    ChartNotFetched {
        /// The chart, as the Katalog names it.
        chart: String,
        /// The reason.
        why: String,
    },
    /// The files have errors.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// A Katalog in the cluster has a kind that they declare.
    #[error(
        "Katalog {katalog} in the cluster holds the claim on {kind}: two operators would undo each other's changes; remove the entry from one Katalog"
    )]
    Claimed {
        /// The kind.
        kind: GroupKind,
        /// The Katalog in the cluster.
        katalog: KatalogRef,
    },
    /// Another installation has a kind that they declare.
    #[error(
        "Katalog {holder} holds the claim on {kind}: two operators would undo each other's changes; stop that one, or remove the entry from one Katalog"
    )]
    Held {
        /// The kind.
        kind: GroupKind,
        /// The Katalog, and its installation.
        holder: String,
    },
    /// The API server refused, or did not answer.
    #[error(transparent)]
    Call(#[from] RequestError),
    /// A CRD was applied and is not served.
    #[error("{0} was applied, but the API server does not serve it after {seconds} s", seconds = .1.as_secs())]
    NotServed(String, Duration),
    /// An object that `setup` waits for is missing or not ready.
    #[error("`setup` waits for {0}, which is not {1} after {2:?}")]
    NotReady(String, &'static str, Duration),
}

impl FileError {
    /// True if the cluster is unreachable, which no change of the files fixes.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Call(error) if error.is_unreachable())
    }
}
