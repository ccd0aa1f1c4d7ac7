//! The informers of a process: one for each kind, scope and selector that is read.

use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    sync::{Arc, Weak, atomic::Ordering},
};

use orkestra_ground::{
    Entropy,
    tasks::{self, Ends, Task},
};
use orkestra_object::{record::Record, value::Path};
use parking_lot::Mutex;

use super::{
    Handle, Reports, Subscriber, Watched,
    informer::{Informer, Shared},
    reflector,
};
use crate::requests::Cluster;

/// Objects per page of a list.
const PAGE: u32 = 500;
/// The same for informers that are not shared: they read whole documents, of up to 1 MiB each.
const DOCUMENTS: u32 = 20;

/// All informers of a process, shared by operators.
pub struct Informers {
    cluster: Cluster,
    entropy: Entropy,
    reports: Reports,
    /// Those of each type of records.
    pools: Mutex<HashMap<TypeId, Box<dyn AnyPool>>>,
}

/// The informers of one type of records.
struct Pool<R: Record>(HashMap<Watched, Weak<Informer<R>>>);

/// A [`Pool`] of any type of records.
trait AnyPool: Send {
    fn as_any(&mut self) -> &mut dyn Any;
    fn stats(&self) -> Vec<Stats>;
}

impl<R: Record> AnyPool for Pool<R> {
    fn as_any(&mut self) -> &mut dyn Any {
        self
    }

    fn stats(&self) -> Vec<Stats> {
        let informers = self.0.values().filter_map(Weak::upgrade);
        informers
            .map(|informer| Stats::of(&informer.shared))
            .collect()
    }
}

/// The counters of one informer, for metrics.
#[derive(Clone, Debug)]
pub struct Stats {
    /// What is watched.
    pub watched: Watched,
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
            pools: Mutex::default(),
        }
    }

    /// The same, with unreadable objects reported to `reports`.
    #[must_use]
    pub fn reporting(mut self, reports: Reports) -> Self {
        self.reports = reports;
        self
    }

    /// Reads objects into records, keeping `paths`. Equal subjects share an informer, which starts with the first reader; must be called
    /// on a tokio runtime.
    pub fn shared<R: Record>(
        &self,
        watched: Watched,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> Handle<R> {
        let mut pools = self.pools.lock();
        let pool = pools
            .entry(TypeId::of::<R>())
            .or_insert_with(|| Box::new(Pool::<R>(HashMap::new())));
        let (cluster, entropy) = (self.cluster.clone(), self.entropy.clone());
        let shared = || Shared::new(watched.clone(), PAGE, paths, self.reports.clone());
        let Some(Pool(pool)) = pool.as_any().downcast_mut::<Pool<R>>() else {
            // The entry of a type holds a pool of that type.
            return start(shared(), (paths, subscriber), cluster, entropy);
        };
        if let Some(known) = pool.get(&watched).and_then(Weak::upgrade) {
            return known.join(paths, subscriber);
        }
        pool.retain(|_, informer| informer.strong_count() > 0);
        let handle = start(shared(), (paths, subscriber), cluster, entropy);
        pool.insert(watched, Arc::downgrade(handle.informer()));
        handle
    }

    /// Reads objects into records of the caller's own type, with an informer that is not shared; must be called on a tokio
    /// runtime. The subscriber is notified of every object, those of the first list included.
    pub fn alone<R: Record>(&self, watched: Watched, subscriber: Subscriber<R>) -> Handle<R> {
        let shared = Shared::new(watched, DOCUMENTS, &[], self.reports.clone());
        let (cluster, entropy) = (self.cluster.clone(), self.entropy.clone());
        start(shared, (&[], Some(subscriber)), cluster, entropy)
    }

    /// The counters of all informers that have readers.
    pub fn stats(&self) -> Vec<Stats> {
        self.pools
            .lock()
            .values()
            .flat_map(|pool| pool.stats())
            .collect()
    }
}

impl Stats {
    fn of<R: Record>(shared: &Shared<R>) -> Self {
        let (records, bytes) = shared.size();
        Self {
            watched: shared.watched.clone(),
            records,
            bytes,
            lists: shared.counts.lists.load(Ordering::Relaxed),
            watches: shared.counts.watches.load(Ordering::Relaxed),
            failures: shared.counts.failures.load(Ordering::Relaxed),
            panics: shared.counts.panics.load(Ordering::Relaxed),
            unreadable: shared.counts.unreadable.load(Ordering::Relaxed),
            rewinds: shared.counts.rewinds.load(Ordering::Relaxed),
        }
    }
}

/// Starts the task of an informer with its first reader, who is notified of every object: of those of the first list, too, which may be
/// complete before this thread continues.
fn start<R: Record>(
    shared: Shared<R>,
    (paths, subscriber): (&[Path], Option<Subscriber<R>>),
    cluster: Cluster,
    entropy: Entropy,
) -> Handle<R> {
    let reading = shared.subscribe(paths, subscriber);
    let shared = Arc::new(shared);
    let kind = shared.watched.served.group_kind();
    let state = (shared.clone(), cluster, entropy);
    // Each run lists again. The task is aborted when the last reader is gone.
    let task =
        tasks::named(Task::Watch, kind).keep(Ends::never(), state, |(shared, cluster, entropy)| {
            Box::pin(reflector::run(shared, cluster, entropy))
        });
    let informer = Informer::new(shared, task.abort_handle());
    Handle::new(Arc::new(informer), reading)
}
