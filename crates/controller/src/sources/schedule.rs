//! When each source of a Komposer is fetched, and what is known about it: pure. Time and randomness are arguments.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use orkestra_compiler::compose::{Artifact, OciReference, RequestKind, SourceRequest};
use orkestra_ground::{Backoff, Entropy};
use tokio::time::Instant;

use super::{FetchError, FetchedSource, WantedSources, is_in_cluster};

/// How often a source is fetched that does not say so.
const INTERVAL: Duration = Duration::from_mins(5);
/// The minimum interval of a source.
const LEAST: Duration = Duration::from_secs(1);
/// Intervals are shortened by up to this fraction, so that sources are not fetched in step.
const JITTER: f64 = 0.1;
/// The delay after a failure that may pass.
pub(crate) const RETRY: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));

/// The sources of one Komposer.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    sources: BTreeMap<String, ScheduledSource>,
    requested: Option<String>,
}

/// One source.
#[derive(Debug)]
struct ScheduledSource {
    request: SourceRequest,
    known: FetchedSource,
    failures: u32,
    next: Next,
}

/// When a source is fetched next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// At that time.
    At(Instant),
    /// It is being fetched; `again` if it is to be fetched once more after that.
    Fetching { again: bool },
    /// Never: it is watched, or its content cannot change.
    Never,
}

/// The outcome of a fetch, in addition to what was known.
#[derive(Debug, PartialEq)]
pub(crate) enum FetchOutcome {
    /// The known artifact.
    Unchanged,
    /// Another artifact.
    Changed(Arc<Artifact>),
    /// A failure, which differs from the last one if it is new.
    Failed {
        /// The reason.
        error: FetchError,
        /// Whether it was not known before.
        is_new: bool,
    },
}

impl Schedule {
    /// Repeats fetches that ended with an earlier run of the task.
    pub(crate) fn resume(&mut self, now: Instant) {
        for source in self.sources.values_mut() {
            if let Next::Fetching { .. } = source.next {
                source.next = Next::At(now);
            }
        }
    }

    /// Takes the wanted sources: new ones are due at once.
    pub(crate) fn adopt(&mut self, wanted: &WantedSources, now: Instant) {
        let at_once = wanted.requested != self.requested;
        self.requested.clone_from(&wanted.requested);
        let ids: BTreeSet<&str> = wanted.requests.iter().map(|one| &*one.id).collect();
        self.sources.retain(|id, _| ids.contains(id.as_str()));
        for request in &wanted.requests {
            let source = self.sources.entry(request.id.clone());
            let source = source.or_insert_with(|| ScheduledSource {
                request: request.clone(),
                known: FetchedSource::default(),
                failures: 0,
                next: Next::first(request, now),
            });
            let is_other = (
                &source.request.auth,
                &source.request.verify,
                source.request.interval,
            ) != (&request.auth, &request.verify, request.interval);
            source.request = request.clone();
            if is_other || at_once {
                source.next = match source.next {
                    // Its answer may be that to other credentials.
                    Next::Fetching { .. } => Next::Fetching { again: true },
                    _ => Next::first(request, now),
                };
            }
        }
    }

    /// Returns the sources outside of the cluster that are due; from now on they are being fetched.
    pub(crate) fn take_due(&mut self, now: Instant) -> Vec<SourceRequest> {
        let is_due =
            |source: &&mut ScheduledSource| matches!(source.next, Next::At(due) if due <= now);
        let due = self.sources.values_mut().filter(is_due);
        due.map(|source| {
            source.next = Next::Fetching { again: false };
            source.request.clone()
        })
        .collect()
    }

    /// Returns when the next source is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let due = self
            .sources
            .values()
            .filter_map(|source| match source.next {
                Next::At(due) => Some(due),
                Next::Fetching { .. } | Next::Never => None,
            });
        due.min()
    }

    /// Records the result of a fetch, and when the source is fetched again; `None` if it is not wanted any more.
    pub(crate) fn note(
        &mut self,
        id: &str,
        result: Result<Arc<Artifact>, FetchError>,
        (now, entropy): (Instant, &Entropy),
    ) -> Option<FetchOutcome> {
        let source = self.sources.get_mut(id)?;
        let after = |interval| Next::At(now + entropy.shorten(interval, JITTER));
        let interval = interval(&source.request);
        let is_again = source.next == Next::Fetching { again: true };
        let outcome = match result {
            Ok(artifact) => {
                source.failures = 0;
                source.next = interval.map_or(Next::Never, after);
                source.known.problem = None;
                // An equal artifact stays the same object.
                if source.known.artifact.as_deref() == Some(&*artifact) {
                    FetchOutcome::Unchanged
                } else {
                    source.known.artifact = Some(Arc::clone(&artifact));
                    FetchOutcome::Changed(artifact)
                }
            }
            Err(error) => {
                source.failures = source.failures.saturating_add(1);
                source.next = if error.permanent {
                    // A pinned source is fetched again too: its owner can still correct it.
                    after(interval.unwrap_or(INTERVAL))
                } else {
                    after(RETRY.after(source.failures - 1))
                };
                let is_new = source.known.problem.as_ref() != Some(&error);
                source.known.problem = Some(error.clone());
                FetchOutcome::Failed { error, is_new }
            }
        };
        if is_in_cluster(&source.request.kind) {
            source.next = Next::Never;
        } else if is_again {
            source.next = Next::At(now);
        }
        Some(outcome)
    }

    /// Returns what is known about each source.
    pub(crate) fn known(&self) -> BTreeMap<String, FetchedSource> {
        let known = self.sources.iter();
        known
            .map(|(id, source)| (id.clone(), source.known.clone()))
            .collect()
    }

    /// Returns the sources.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &SourceRequest> {
        self.sources.values().map(|source| &source.request)
    }

    /// Returns one source.
    pub(crate) fn request(&self, id: &str) -> Option<&SourceRequest> {
        self.sources.get(id).map(|source| &source.request)
    }
}

impl Next {
    /// The first fetch of a source: at once, unless it is watched.
    fn first(request: &SourceRequest, now: Instant) -> Self {
        if is_in_cluster(&request.kind) {
            Self::Never
        } else {
            Self::At(now)
        }
    }
}

/// Returns how often a source is fetched; none for one whose content its reference names, and for an interval of zero.
fn interval(request: &SourceRequest) -> Option<Duration> {
    if let RequestKind::Registry { url, .. } = &request.kind
        && OciReference::parse(url).is_ok_and(|reference| reference.is_pinned())
    {
        return None;
    }
    let declared = request.interval.map_or(INTERVAL, |interval| interval.0);
    (!declared.is_zero()).then(|| declared.max(LEAST))
}
