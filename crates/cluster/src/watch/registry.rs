//! The informers of a process: one for each kind, scope and selector that somebody reads.

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError, Weak, atomic::Ordering},
};

use orkestra_core::{
    reconcile::{
        observe::Seen,
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

use super::{
    Handle, Presence, Record, Reports, Subscriber, Watched,
    informer::{Informer, Shared},
    reflector,
};
use crate::wire::Wire;

/// Objects in a page of a list.
const PAGE: u32 = 500;

/// All informers of children and of custom resources; shared among operators.
pub struct Informers {
    wire: Wire,
    entropy: Entropy,
    reports: Reports,
    children: Pool<ChildRecord>,
    crs: Pool<CrRecord>,
    related: Pool<Related>,
    observed: Pool<Seen>,
    presence: Pool<Presence>,
    scalers: Pool<Scaler>,
}

/// What one informer has done, for metrics.
#[derive(Clone, Debug)]
pub struct Stats {
    /// What it is of.
    pub watched: Watched,
    /// Whether its objects are custom resources, not children.
    pub of_crs: bool,
    /// Records in its store.
    pub records: usize,
    /// Bytes of them.
    pub bytes: usize,
    /// Lists begun: one, and one for each time that a watch could not go on or a reader asked for more.
    pub lists: u64,
    /// Watches begun; about one in five minutes is healthy.
    pub watches: u64,
    /// Lists and watches that failed.
    pub failures: u64,
    /// Panics caught in records and subscribers.
    pub panics: u64,
    /// States of objects that could not be read whole.
    pub unreadable: u64,
    /// How often the API server was found in an older state than it was.
    pub rewinds: u64,
}

type Pool<R> = Mutex<HashMap<Watched, Weak<Informer<R>>>>;

impl fmt::Debug for Informers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Informers")
    }
}

impl Informers {
    /// None yet; they will read through `wire`.
    pub fn new(wire: Wire, entropy: Entropy) -> Self {
        Self {
            wire,
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

    /// The same, objects that cannot be read being reported to `reports`.
    #[must_use]
    pub fn reporting(mut self, reports: Reports) -> Self {
        self.reports = reports;
        self
    }

    /// Reads children, keeping what lies under `paths`. Starts an informer where there is none; must be called on a tokio
    /// runtime.
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

    /// Reads what belongs to children, as [`Informers::children`].
    pub fn related(
        &self,
        watched: Watched,
        subscriber: Option<Subscriber<Related>>,
    ) -> Handle<Related> {
        self.join(&self.related, watched, &[], subscriber)
    }

    /// Reads objects that lead to passes, as [`Informers::children`].
    pub fn observed(
        &self,
        watched: Watched,
        paths: &[Path],
        subscriber: Option<Subscriber<Seen>>,
    ) -> Handle<Seen> {
        self.join(&self.observed, watched, paths, subscriber)
    }

    /// Reads which objects there are, in which versions; nothing of their content.
    pub fn presence(&self, watched: Watched, subscriber: Subscriber<Presence>) -> Handle<Presence> {
        self.join(&self.presence, watched, &[], Some(subscriber))
    }

    /// Reads autoscalers, as [`Informers::children`].
    pub fn scalers(&self, watched: Watched, subscriber: Subscriber<Scaler>) -> Handle<Scaler> {
        self.join(&self.scalers, watched, &[], Some(subscriber))
    }

    /// Reads objects of a kind of the caller's own into records of its own, by an informer that nobody shares; must be called on
    /// a tokio runtime.
    pub fn alone<R: Record>(&self, watched: Watched, subscriber: Subscriber<R>) -> Handle<R> {
        let (wire, entropy) = (self.wire.clone(), self.entropy.clone());
        let informer = start(watched, PAGE, &[], wire, entropy, self.reports.clone());
        informer.join(&[], Some(subscriber))
    }

    /// What the informers have done that somebody reads.
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
        let mut pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pool.get(&watched).and_then(Weak::upgrade);
        let informer = known.unwrap_or_else(|| {
            pool.retain(|_, informer| informer.strong_count() > 0);
            let informer = start(
                watched.clone(),
                PAGE,
                paths,
                self.wire.clone(),
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
        let pool = pool.lock().unwrap_or_else(PoisonError::into_inner);
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
    wire: Wire,
    entropy: Entropy,
    reports: Reports,
) -> Arc<Informer<R>> {
    let shared = Arc::new(Shared::new(watched, page, paths, reports));
    let kind = shared.watched.served.group_kind();
    let state = (shared.clone(), wire, entropy);
    // Each run lists anew. It is aborted when nobody reads it any more.
    let task = tasks::named(Task::Watch, kind).keep(Ends::never(), state, |state| {
        let (shared, wire, entropy) = state.clone();
        Box::pin(reflector::run(shared, wire, entropy))
    });
    Arc::new(Informer::new(shared, task.abort_handle()))
}
