//! Fetches of sources of Komposers.

use std::time::Duration;

use orkestra_compiler::compose::{Artifact, RequestKind};

use super::Metrics;

/// The kinds of sources outside of the cluster.
pub(crate) const KINDS: &[&str] = &["registry", "file", "git", "helm"];
/// The results of fetches.
pub(crate) const RESULTS: &[&str] = &["changed", "unchanged", "error"];

/// The result of a fetch.
#[derive(Clone, Copy, Debug)]
pub enum FetchResult<'a> {
    /// A new revision.
    Changed(&'a Artifact),
    /// The revision that was known.
    Unchanged,
    /// There is no artifact.
    Failed,
}

impl Metrics {
    /// Counts a fetch of a source; `took` is none if it failed before the source was asked. Sources of the cluster are not
    /// fetched.
    pub fn fetched(&self, kind: &RequestKind, result: FetchResult<'_>, took: Option<Duration>) {
        let kind = match kind {
            RequestKind::Registry { .. } => "registry",
            RequestKind::File { .. } | RequestKind::Url { .. } => "file",
            RequestKind::Git { .. } => "git",
            RequestKind::Helm { .. } => "helm",
            RequestKind::ConfigMap { .. } | RequestKind::Katalogs { .. } => return,
        };
        let families = &self.0.families;
        let result = match result {
            FetchResult::Changed(artifact) => {
                let texts = artifact.documents.iter().map(|file| file.text.len());
                let bytes = texts.sum::<usize>() as u64;
                families
                    .source_bytes
                    .with_label_values(&[kind])
                    .inc_by(bytes);
                "changed"
            }
            FetchResult::Unchanged => "unchanged",
            FetchResult::Failed => "error",
        };
        let fetches = &families.source_fetches;
        fetches.with_label_values(&[kind, result]).inc();
        let duration = families.source_duration.with_label_values(&[kind]);
        if let Some(took) = took {
            duration.observe(took.as_secs_f64());
        }
    }
}
