//! The informers of a process: one for each kind, scope and selector that is read.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Weak, atomic::Ordering},
};

use orkestra_core::{
    reconcile::{
        observe::ObservedRecord,
        record::{ChildRecord, CrRecord},
        related::Related,
        scaler::Scaler,
    },
    value::Path,
};
use orkestra_ground::{
    Entropy,
    tasks::{self, Ends, Task},
};
use parking_lot::Mutex;

use super::{
    Handle, Presence, Record, Reports, Subscriber, Watched,
    informer::{Informer, Shared},
    reflector,
};
use crate::requests::Cluster;

/// Objects per page of a list.
const PAGE: u32 = 500;

/// All informers of children and of custom resources; shared by operators.
pub struct Informers {
    cluster: Cluster,
    entropy: Entropy,
    reports: Reports,
    children: Pool<ChildRecord>,
    crs: Pool<CrRecord>,
    related: Pool<Related>,
    observed: Pool<ObservedRecord>,
    presence: Pool<Presence>,
    scalers: Pool<Scaler>,
}

/// The counters of one informer, for metrics.
#[derive(Clone, Debug)]
pub struct Stats {
    /// What is watched.
    pub watched: Watched,
    /// Whether its objects are custom resources, not children.
    pub of_crs: bool,
    /// Records in its store.
    pub records: usize,
    /// Bytes of the records.
    pub bytes: usize,
    /// Lists started: one, plus one for each time that a watch could not resume or a reader needed more fields.
    pub lists: u64,
    /// Watches started; about one in five minutes is healthy.
    pub watches: u64,
    /// Lists and watches that failed.
    pub failures: u64,
    /// Panics caught in records and subscribers.
    pub panics: u64,
    /// Object states that could not be read completely.
    pub unreadable: u64,
    /// How often the API server was found in an older state than before.
    pub rewinds: u64,
}

type Pool<R> = Mutex<HashMap<Watched, Weak<Informer<R>>>>;

impl fmt::Debug for Informers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Informers")
    }
}

impl Informers {
    /// No informers yet; they will read through `cluster`.
    pub fn new(cluster: Cluster, entropy: Entropy) -> Self {
        Self {
            cluster,
            entropy,
            reports: Reports::default(),
            children: Mutex::default(),
            crs: Mutex::default(),
            related: Mutex::default(),
            observed: Mutex::default(),
            presence: Mutex::default(),
            scalers: Mutex::default(),
        }
    }

    /// The same, with unreadable objects reported to `reports`.
    #[must_use]
    pub fn reporting(mut self, reports: Reports) -> Self {
        self.reports = reports;
        self
    }

    /// Reads children, keeping `paths`. Starts an informer if there is none; must be called on a tokio runtime.
    pub fn children(
        &self,
        watched: Watched,
        paths: &[Path],
        subscriber: Option<Subscriber<ChildRecord>>,
    ) -> Handle<ChildRecord> {
        self.join(&self.children, watched, paths, subscriber)
    }

    /// Reads custom resources, as [`Informers::children`].
    pub fn crs(
        &self,
        watched: Watched,
        paths: &[Path],
        subscriber: Option<Subscriber<CrRecord>>,
    ) -> Handle<CrRecord> {
        self.join(&self.crs, watched, paths, subscriber)
    }

    /// Reads objects that belong to children, as [`Informers::children`].
    pub fn related(
        &self,
        watched: Watched,
        subscriber: Option<Subscriber<Related>>,
    ) -> Handle<Related> {
        self.join(&self.related, watched, &[], subscriber)
    }

    /// Reads objects that trigger passes, as [`Informers::children`].
    pub fn observed(
        &self,
        watched: Watched,
        paths: &[Path],
        subscriber: Option<Subscriber<ObservedRecord>>,
    ) -> Handle<ObservedRecord> {
        self.join(&self.observed, watched, paths, subscriber)
    }

    /// Reads the existence and version of objects, without their content.
    pub fn presence(&self, watched: Watched, subscriber: Subscriber<Presence>) -> Handle<Presence> {
        self.join(&self.presence, watched, &[], Some(subscriber))
    }

    /// Reads autoscalers, as [`Informers::children`].
    pub fn scalers(&self, watched: Watched, subscriber: Subscriber<Scaler>) -> Handle<Scaler> {
        self.join(&self.scalers, watched, &[], Some(subscriber))
    }

    /// Reads objects into records of the caller's own type, with an informer that is not shared; must be called on a tokio
    /// runtime.
    pub fn alone<R: Record>(&self, watched: Watched, subscriber: Subscriber<R>) -> Handle<R> {
        let (cluster, entropy) = (self.cluster.clone(), self.entropy.clone());
        let informer = start(watched, PAGE, &[], cluster, entropy, self.reports.clone());
        informer.join(&[], Some(subscriber))
    }

    /// The counters of all informers that have readers.
    pub fn stats(&self) -> Vec<Stats> {
        let mut all = stats(&self.children, false);
        all.extend(stats(&self.related, false));
        all.extend(stats(&self.observed, false));
        all.extend(stats(&self.crs, true));
        all.extend(stats(&self.presence, false));
        all.extend(stats(&self.scalers, false));
        all
    }

    fn join<R: Record>(
        &self,
        pool: &Pool<R>,
        watched: Watched,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> Handle<R> {
        let mut pool = pool.lock();
        let known = pool.get(&watched).and_then(Weak::upgrade);
        let informer = known.unwrap_or_else(|| {
            pool.retain(|_, informer| informer.strong_count() > 0);
            let informer = start(
                watched.clone(),
                PAGE,
                paths,
                self.cluster.clone(),
                self.entropy.clone(),
                self.reports.clone(),
            );
            pool.insert(watched, Arc::downgrade(&informer));
            informer
        });
        informer.join(paths, subscriber)
    }
}

fn stats<R: Record>(pool: &Pool<R>, of_crs: bool) -> Vec<Stats> {
    let informers: Vec<_> = {
        let pool = pool.lock();
        pool.values().filter_map(Weak::upgrade).collect()
    };
    let read = |informer: &Arc<Informer<R>>| {
        let shared = &informer.shared;
        let (records, bytes) = shared.size();
        Stats {
            watched: shared.watched.clone(),
            of_crs,
            records,
            bytes,
            lists: shared.counts.lists.load(Ordering::Relaxed),
            watches: shared.counts.watches.load(Ordering::Relaxed),
            failures: shared.counts.failures.load(Ordering::Relaxed),
            panics: shared.counts.panics.load(Ordering::Relaxed),
            unreadable: shared.counts.unreadable.load(Ordering::Relaxed),
            rewinds: shared.counts.rewinds.load(Ordering::Relaxed),
        }
    };
    informers.iter().map(read).collect()
}

/// Starts an informer that keeps `paths` from its first list on.
pub(super) fn start<R: Record>(
    watched: Watched,
    page: u32,
    paths: &[Path],
    cluster: Cluster,
    entropy: Entropy,
    reports: Reports,
) -> Arc<Informer<R>> {
    let shared = Arc::new(Shared::new(watched, page, paths, reports));
    let kind = shared.watched.served.group_kind();
    let state = (shared.clone(), cluster, entropy);
    // Each run lists again. The task is aborted when the last reader is gone.
    let task =
        tasks::named(Task::Watch, kind).keep(Ends::never(), state, |(shared, cluster, entropy)| {
            Box::pin(reflector::run(shared, cluster, entropy))
        });
    Arc::new(Informer::new(shared, task.abort_handle()))
}
