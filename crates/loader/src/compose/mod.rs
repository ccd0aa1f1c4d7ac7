//! The sources of files, fetched from disk and servers, and the other inputs of their compilation.
//!
//! ```text
//!  Compilation (core) ── requests ──► FileInputs ── sources, Motifs of registries ──► Fetch
//!                                          └─ Motifs among the files, texts of files
//! ```

mod disk;
mod inputs;
mod paced;
mod remote;
#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_compiler::compose::{Artifact, Locked, SourceRequest};
use orkestra_language::{api::HelmChart, diagnostics::Diagnostic};

pub use self::{
    disk::DiskFiles, inputs::FileInputs, paced::Paced, remote::ANY_KEY, remote::ConfigMaps,
    remote::Remote,
};

/// Fetches sources.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Fetches one source. The error has the place of the source: see [`SourceRequest::problem`].
    fn fetch<'a>(&'a self, request: &'a SourceRequest) -> BoxFuture<'a, Fetched>;

    /// Fetches one source in its locked revision; a fetcher that knows no revisions fetches the current one.
    fn fetch_locked<'a>(
        &'a self,
        request: &'a SourceRequest,
        _locked: &'a Locked,
    ) -> BoxFuture<'a, Fetched> {
        self.fetch(request)
    }

    /// True if sources need not be locked, even if a composition requires it.
    fn ignores_locks(&self) -> bool {
        false
    }

    /// Fetches a Motif that a document imports from a registry.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn motif<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Result<Arc<Artifact>, String>> {
        let why = format!("`{reference}` is not read: Motifs of registries are not available here");
        async move { Err(why) }.boxed()
    }

    /// Fetches the archive of a Helm chart: the newest version that satisfies `version`.
    ///
    /// # Errors
    /// The reason, as a sentence.
    fn chart<'a>(&'a self, chart: ChartReference<'a>) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        let why = format!(
            "`{}` is not fetched: charts are not available here",
            chart.chart
        );
        async move { Err(why) }.boxed()
    }
}

/// A Helm chart of a repository or a registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChartReference<'a> {
    /// The URL of the repository; `oci://…` of a registry.
    pub repo: &'a str,
    /// The name of the chart; empty if `repo` names it.
    pub chart: &'a str,
    /// A version or a range; empty for the newest.
    pub version: &'a str,
}

impl<'a> ChartReference<'a> {
    /// Returns the reference of a chart of `setup.helm`; `None` for a chart on disk.
    pub fn of(declared: &'a HelmChart) -> Option<Self> {
        let HelmChart {
            repo,
            chart,
            version,
            ..
        } = declared;
        let (repo, chart) = match repo {
            Some(repo) => (&**repo, &**chart),
            None if chart.starts_with("oci://") => (&**chart, ""),
            None => return None,
        };
        Some(Self {
            repo,
            chart,
            version: version.as_deref().unwrap_or_default(),
        })
    }

    /// Returns its identity in `komposer.lock`.
    pub fn id(&self) -> String {
        let Self {
            repo,
            chart,
            version,
        } = self;
        let version = if version.is_empty() { "*" } else { version };
        let slash = if chart.is_empty() { "" } else { "/" };
        let repo = repo.trim_end_matches('/');
        format!("chart+{repo}{slash}{chart}@{version}")
    }
}

/// A fetched source, or why there is none.
pub type Fetched = Result<Arc<Artifact>, Box<Diagnostic>>;
