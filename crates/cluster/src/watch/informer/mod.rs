//! The shared state of one informer: records, readers, and the state of the watch.

pub(crate) mod handle;
mod readers;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use orkestra_object::{
    Identity, ObjectKey,
    value::{Node, Path, Projection},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};

use self::{handle::Handle, readers::Readers};
use super::{
    Change, Record, Reports, Spec, Subscriber, WatchProblem, WatchState, Watched, store::Records,
    unread::Unread,
};

/// One informer, without its task.
pub(crate) struct Shared<R> {
    pub(crate) watched: Watched,
    /// Objects per page of a list.
    pub(crate) page: u32,
    records: Mutex<Records<R>>,
    readers: Mutex<Readers<R>>,
    /// Wakes the task from a pause, and to check whether a list is due.
    pub(crate) nudge: Notify,
    /// Whether the API server may be in an older state than before.
    doubted: AtomicBool,
    /// Whether it is unknown that the records match the API server's present state: until the states are compared.
    open: AtomicBool,
    pub(crate) unread: Unread,
    pub(crate) counts: Counts,
}

/// The counters of an informer.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) lists: AtomicU64,
    pub(crate) watches: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    pub(crate) rewinds: AtomicU64,
}

pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// How objects are read: into which records, and which parts are decoded for that.
pub(crate) struct Reading {
    pub(crate) spec: Spec,
    pub(crate) projection: Projection,
}

impl Reading {
    fn new<R: Record>(spec: Spec) -> Arc<Self> {
        let projection = R::projection(&spec);
        Arc::new(Self { spec, projection })
    }
}

impl<R: Record> Shared<R> {
    pub(crate) fn new(watched: Watched, page: u32, paths: &[Path], reports: Reports) -> Self {
        let reading = Reading::new::<R>(Spec::new(watched.served.group_kind(), paths));
        Self {
            doubted: AtomicBool::new(false),
            open: AtomicBool::new(false),
            unread: Unread::new(watched.served.clone(), reports),
            watched,
            page,
            records: Mutex::new(Records::new()),
            readers: Mutex::new(Readers::new(reading)),
            nudge: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// Locks the records, for one step at a time.
    pub(crate) fn records(&self) -> MutexGuard<'_, Records<R>> {
        self.records.lock()
    }

    /// The number of records, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let records = self.records();
        (records.len(), records.bytes())
    }

    /// Adds a subscription for a reader of `paths`; returns its number, and the state of the watch for it. If it needs more than is
    /// kept so far, another list is requested.
    pub(crate) fn subscribe(
        &self,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> (u64, watch::Receiver<WatchState>) {
        let (is_wider, reading) = self.readers.lock().subscribe(paths, subscriber);
        if is_wider {
            self.nudge.notify_one();
        }
        reading
    }

    /// Releases a subscription.
    pub(crate) fn leave(&self, subscription: u64) {
        self.readers.lock().leave(subscription);
    }

    /// True if no subscription is older than that one.
    pub(crate) fn is_first(&self, subscription: u64) -> bool {
        let readers = self.readers.lock();
        readers
            .subscriptions
            .first()
            .is_some_and(|one| one.number == subscription)
    }

    /// Returns how to read records, and its generation.
    pub(crate) fn reading(&self) -> (Arc<Reading>, u64) {
        let readers = self.readers.lock();
        (readers.reading.clone(), readers.generation)
    }

    /// True if a reader needs more fields than the last list was made for.
    pub(crate) fn wants_list(&self) -> bool {
        let readers = self.readers.lock();
        readers
            .synced
            .is_none_or(|synced| synced < readers.generation)
    }

    /// Records that a list for that generation is complete.
    pub(crate) fn synced(&self, generation: u64) {
        self.readers.lock().publish(|readers| {
            readers.synced = Some(generation);
            readers.recovered();
        });
    }

    /// Records that the API server answers again.
    pub(crate) fn healthy(&self) {
        self.readers.lock().publish(Readers::recovered);
    }

    /// Records that the kind cannot be read. `outages` is the number of ended outages of the API server, none during one.
    pub(crate) fn failing(&self, problem: WatchProblem, outages: Option<u64>) {
        count(&self.counts.failures);
        self.readers
            .lock()
            .publish(|readers| readers.fail(problem, outages));
    }

    /// Reports that a response is older than the state known before the request: the API server may have been restored to an
    /// older state.
    pub(crate) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.nudge.notify_one();
    }

    /// Sets whether it is unknown that the records match the API server's present state.
    pub(crate) fn set_open(&self, is_open: bool) {
        self.open.store(is_open, Ordering::Relaxed);
    }

    /// True while that is unknown: it takes a request to find out, and a list if they do not match.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns whether a doubt was reported since the last call.
    pub(crate) fn is_doubted(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// Reads a record. If a part of the object is unreadable, the record lacks that part, and the object is reported.
    ///
    /// # Errors
    /// The object cannot be recorded, and is reported: its key, if at least that is readable.
    pub(crate) fn read(&self, object: &Node, spec: &Spec) -> Result<R, Option<ObjectKey>> {
        let why = match catch_unwind(AssertUnwindSafe(|| R::read(object, spec))) {
            Ok(Ok(record)) => {
                let id = record.identity();
                match record.fault() {
                    None => self.unread.remove(&id.key),
                    Some(fault) => {
                        count(&self.counts.unreadable);
                        self.unread.add(id, &fault.to_string());
                    }
                }
                return Ok(record);
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                count(&self.counts.panics);
                "recording it panicked".to_owned()
            }
        };
        count(&self.counts.unreadable);
        let Ok(id) = Identity::read(object) else {
            self.unread.add_nameless(object, &why);
            return Err(None);
        };
        self.unread.add(&id, &why);
        Err(Some(id.key))
    }

    /// Notifies subscribers, except that of subscription `except`; no lock is held meanwhile.
    pub(crate) fn notify(&self, changes: impl IntoIterator<Item = Change<R>>, except: Option<u64>) {
        let mut subscribers: Option<Vec<Subscriber<R>>> = None;
        for change in changes {
            let subscribers =
                subscribers.get_or_insert_with(|| self.readers.lock().subscribers(except));
            for subscriber in subscribers {
                if catch_unwind(AssertUnwindSafe(|| subscriber(&change))).is_err() {
                    count(&self.counts.panics);
                    tracing::error!(kind = %self.watched.served.plural, object = %change.key, "a subscriber panicked");
                }
            }
        }
    }
}

/// An informer with its task, which is aborted when the informer is dropped.
pub(crate) struct Informer<R> {
    pub(crate) shared: Arc<Shared<R>>,
    task: AbortHandle,
}

impl<R> Drop for Informer<R> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<R: Record> Informer<R> {
    pub(crate) fn new(shared: Arc<Shared<R>>, task: AbortHandle) -> Self {
        Self { shared, task }
    }

    /// Adds a subscription, see [`Shared::subscribe`].
    pub(crate) fn join(
        self: Arc<Self>,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> Handle<R> {
        let reading = self.shared.subscribe(paths, subscriber);
        Handle::new(self, reading)
    }
}
