//! Sources that are fetched again only at their interval.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use futures::{FutureExt as _, future::BoxFuture};
use orkestra_compiler::compose::{Artifact, Locked, RequestKind, SourceRequest};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{ChartReference, Fetch, Fetched};

/// The interval of sources that declare none.
const INTERVAL: Duration = Duration::from_mins(5);
/// How long a failure is remembered before the source is tried again.
const PAUSE: Duration = Duration::from_secs(10);

/// Fetches each source at its interval, and returns the last artifact in between. Files on disk are read each time. If a source
/// cannot be fetched again, its last artifact stays.
#[derive(Debug)]
pub struct Paced {
    inner: Arc<dyn Fetch>,
    last: Mutex<BTreeMap<String, Last>>,
    motifs: Mutex<BTreeMap<String, (Instant, Motif)>>,
}

/// A Motif of a registry, or why there is none.
type Motif = Result<Arc<Artifact>, String>;

/// The last result of a source.
#[derive(Debug, Clone)]
struct Last {
    /// The request that it answers: another one with the same identity may have other credentials.
    request: SourceRequest,
    /// The revision that was asked for.
    locked: Option<Locked>,
    until: Instant,
    fetched: Fetched,
}

impl Paced {
    /// Paces a fetcher.
    pub fn new(inner: Arc<dyn Fetch>) -> Self {
        Self {
            inner,
            last: Mutex::default(),
            motifs: Mutex::default(),
        }
    }

    fn last(&self, request: &SourceRequest, locked: Option<&Locked>) -> Option<Last> {
        let last = self.last.lock();
        let last = last.get(&request.id)?.clone();
        let is_same = |last: &SourceRequest| {
            (&last.kind, &last.auth, &last.verify)
                == (&request.kind, &request.auth, &request.verify)
        };
        Some(last).filter(|last| is_same(&last.request) && last.locked.as_ref() == locked)
    }

    /// Keeps the result of a source, and returns what counts.
    fn keep(
        &self,
        (request, locked): (&SourceRequest, Option<&Locked>),
        before: Option<Arc<Artifact>>,
        fetched: Fetched,
    ) -> Fetched {
        let interval = request.interval.map_or(INTERVAL, |interval| interval.0);
        let (pause, fetched) = match (fetched, before) {
            (Ok(artifact), _) => (interval, Ok(artifact)),
            (Err(_), Some(before)) => (PAUSE.min(interval), Ok(before)),
            (Err(problem), None) => (PAUSE.min(interval), Err(problem)),
        };
        let last = Last {
            request: request.clone(),
            locked: locked.cloned(),
            until: Instant::now() + pause,
            fetched: fetched.clone(),
        };
        let mut all = self.last.lock();
        all.insert(request.id.clone(), last);
        fetched
    }
}

impl Fetch for Paced {
    fn motif<'a>(&'a self, reference: &'a str) -> BoxFuture<'a, Motif> {
        async move {
            let motifs = || self.motifs.lock();
            let before = motifs().get(reference).cloned();
            let before = match before {
                Some((until, found)) if Instant::now() < until => return found,
                before => before.and_then(|(_, found)| found.ok()),
            };
            let (pause, found) = match (self.inner.motif(reference).await, before) {
                (Ok(found), _) => (INTERVAL, Ok(found)),
                (Err(_), Some(before)) => (PAUSE, Ok(before)),
                (Err(why), None) => (PAUSE, Err(why)),
            };
            let kept = (Instant::now() + pause, found.clone());
            motifs().insert(reference.to_owned(), kept);
            found
        }
        .boxed()
    }

    fn chart<'a>(&'a self, chart: ChartReference<'a>) -> BoxFuture<'a, Result<Vec<u8>, String>> {
        self.inner.chart(chart)
    }

    fn fetch<'a>(&'a self, request: &'a SourceRequest) -> BoxFuture<'a, Fetched> {
        self.paced(request, None).boxed()
    }

    fn fetch_locked<'a>(
        &'a self,
        request: &'a SourceRequest,
        locked: &'a Locked,
    ) -> BoxFuture<'a, Fetched> {
        self.paced(request, Some(locked)).boxed()
    }

    fn ignores_locks(&self) -> bool {
        self.inner.ignores_locks()
    }
}

impl Paced {
    async fn paced(&self, request: &SourceRequest, locked: Option<&Locked>) -> Fetched {
        let fetching = || match locked {
            Some(locked) => self.inner.fetch_locked(request, locked),
            None => self.inner.fetch(request),
        };
        if matches!(request.kind, RequestKind::File { .. }) {
            return fetching().await;
        }
        let last = self.last(request, locked);
        if let Some(last) = last.as_ref().filter(|last| Instant::now() < last.until) {
            return last.fetched.clone();
        }
        let fetched = fetching().await;
        let before = last.and_then(|last| last.fetched.ok());
        self.keep((request, locked), before, fetched)
    }
}
