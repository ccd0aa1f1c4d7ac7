//! The shared state of one informer: records, readers, and the state of the watch.

pub(super) mod handle;

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use orkestra_core::{
    plan::ObjectKey,
    reconcile::record::Identity,
    value::{Node, Path, Projection},
};
use parking_lot::{Mutex, MutexGuard};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
    time::Instant,
};

use self::handle::Handle;
use super::{
    Change, Record, Reports, Spec, Subscriber, WatchProblem, WatchState, Watched, store::Records,
    unread::Unread,
};

/// One informer, without its task.
pub(super) struct Shared<R> {
    pub(super) watched: Watched,
    /// Objects per page of a list.
    pub(super) page: u32,
    records: Mutex<Records<R>>,
    readers: Mutex<Readers<R>>,
    /// Wakes the task from a pause, and to check whether a list is due.
    pub(super) nudge: Notify,
    /// Whether the API server may be in an older state than before.
    doubted: AtomicBool,
    /// Whether it is unknown that the records match the API server's present state: until the states are compared.
    open: AtomicBool,
    pub(super) unread: Unread,
    pub(super) counts: Counts,
}

/// The counters of an informer.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) lists: AtomicU64,
    pub(super) watches: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) panics: AtomicU64,
    pub(super) unreadable: AtomicU64,
    pub(super) rewinds: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// How objects are read: into which records, and which parts are decoded for that.
pub(super) struct Reading {
    pub(super) spec: Spec,
    pub(super) projection: Projection,
}

impl Reading {
    fn new<R: Record>(spec: Spec) -> Arc<Self> {
        let projection = R::projection(&spec);
        Arc::new(Self { spec, projection })
    }
}

/// A kind that has been unavailable for this long, while the API server is reachable, is reported as not served.
const LASTING: Duration = Duration::from_mins(1);

/// The readers of an informer, and their state.
struct Readers<R> {
    reading: Arc<Reading>,
    /// Grows with the set of fields that are kept; a list made for one generation serves every reader up to it.
    generation: u64,
    synced: Option<u64>,
    problem: Option<WatchProblem>,
    /// When this kind began to be unavailable while the API server itself was reachable, and the number of outages until then.
    unavailable_since: Option<(Instant, u64)>,
    last_subscription: u64,
    subscriptions: Vec<Subscription<R>>,
    /// The state as published to the subscriptions, shared by all that have the same needs.
    states: Vec<SharedState>,
}

/// The state of the watch, for the subscriptions that need a generation.
struct SharedState {
    needs: u64,
    state: watch::Sender<WatchState>,
}

/// The place of one handle.
struct Subscription<R> {
    number: u64,
    /// The generation of the spec that covers the fields it reads.
    needs: u64,
    subscriber: Option<Subscriber<R>>,
}

impl<R: Record> Shared<R> {
    pub(super) fn new(watched: Watched, page: u32, paths: &[Path], reports: Reports) -> Self {
        let reading = Reading::new::<R>(Spec::new(watched.served.group_kind(), paths));
        let readers = Readers {
            reading,
            generation: 0,
            synced: None,
            problem: None,
            unavailable_since: None,
            last_subscription: 0,
            subscriptions: Vec::new(),
            states: Vec::new(),
        };
        Self {
            doubted: AtomicBool::new(false),
            open: AtomicBool::new(false),
            unread: Unread::new(watched.served.clone(), reports),
            watched,
            page,
            records: Mutex::new(Records::new()),
            readers: Mutex::new(readers),
            nudge: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// Locks the records, for one step at a time.
    pub(super) fn records(&self) -> MutexGuard<'_, Records<R>> {
        self.records.lock()
    }

    /// The number of records, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let records = self.records();
        (records.len(), records.bytes())
    }

    /// Releases a subscription.
    pub(super) fn leave(&self, subscription: u64) {
        self.readers.lock().leave(subscription);
    }

    /// True if no subscription is older than that one.
    pub(super) fn is_first(&self, subscription: u64) -> bool {
        let readers = self.readers.lock();
        readers
            .subscriptions
            .first()
            .is_some_and(|one| one.number == subscription)
    }

    /// Returns how to read records, and its generation.
    pub(super) fn reading(&self) -> (Arc<Reading>, u64) {
        let readers = self.readers.lock();
        (readers.reading.clone(), readers.generation)
    }

    /// True if a reader needs more fields than the last list was made for.
    pub(super) fn wants_list(&self) -> bool {
        let readers = self.readers.lock();
        readers
            .synced
            .is_none_or(|synced| synced < readers.generation)
    }

    /// Records that a list for that generation is complete.
    pub(super) fn synced(&self, generation: u64) {
        self.readers.lock().publish(|readers| {
            readers.synced = Some(generation);
            readers.recovered();
        });
    }

    /// Records that the API server answers again.
    pub(super) fn healthy(&self) {
        self.readers.lock().publish(Readers::recovered);
    }

    /// Records that the kind cannot be read. `outages` is the number of ended outages of the API server, none during one.
    pub(super) fn failing(&self, problem: WatchProblem, outages: Option<u64>) {
        count(&self.counts.failures);
        self.readers
            .lock()
            .publish(|readers| readers.fail(problem, outages));
    }

    /// Reports that a response is older than the state known before the request: the API server may have been restored to an
    /// older state.
    pub(super) fn doubt(&self) {
        self.doubted.store(true, Ordering::Relaxed);
        self.nudge.notify_one();
    }

    /// Sets whether it is unknown that the records match the API server's present state.
    pub(super) fn set_open(&self, is_open: bool) {
        self.open.store(is_open, Ordering::Relaxed);
    }

    /// True while that is unknown: it takes a request to find out, and a list if they do not match.
    pub(super) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// Returns whether a doubt was reported since the last call.
    pub(super) fn is_doubted(&self) -> bool {
        self.doubted.swap(false, Ordering::Relaxed)
    }

    /// Reads a record. If a part of the object is unreadable, the record lacks that part, and the object is reported.
    ///
    /// # Errors
    /// The object cannot be recorded, and is reported: its key, if at least that is readable.
    pub(super) fn read(&self, object: &Node, spec: &Spec) -> Result<R, Option<ObjectKey>> {
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
    pub(super) fn notify(&self, changes: impl IntoIterator<Item = Change<R>>, except: Option<u64>) {
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

impl<R> Readers<R> {
    fn recovered(&mut self) {
        (self.problem, self.unavailable_since) = (None, None);
    }

    fn fail(&mut self, mut problem: WatchProblem, outages: Option<u64>) {
        if let WatchProblem::Unavailable { is_lasting, .. } = &mut problem {
            *is_lasting = self.was_lasting() || outages.is_some_and(|now| self.lasts(now));
        } else {
            self.unavailable_since = None;
        }
        self.problem = Some(problem);
    }

    /// True if the last problem was lasting: it is until the kind is read again.
    fn was_lasting(&self) -> bool {
        let lasting = |problem: &WatchProblem| match problem {
            WatchProblem::Unavailable { is_lasting, .. } => *is_lasting,
            WatchProblem::NotServed | WatchProblem::Forbidden { .. } => false,
        };
        self.problem.as_ref().is_some_and(lasting)
    }

    /// True if the kind has been unavailable for a minute without an outage of the API server, which the circuit breaker reports.
    fn lasts(&mut self, outages: u64) -> bool {
        let now = Instant::now();
        let begun = self.unavailable_since.filter(|(_, then)| *then == outages);
        let (since, _) = *self
            .unavailable_since
            .insert(begun.unwrap_or((now, outages)));
        now.duration_since(since) >= LASTING
    }

    fn subscribers(&self, except: Option<u64>) -> Vec<Subscriber<R>> {
        let subscriptions = self
            .subscriptions
            .iter()
            .filter(|subscription| Some(subscription.number) != except);
        subscriptions
            .filter_map(|subscription| subscription.subscriber.clone())
            .collect()
    }

    fn publish(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        for states in &self.states {
            let state = self.state_for(states.needs);
            states.state.send_if_modified(|last| {
                let differs = *last != state;
                *last = state;
                differs
            });
        }
    }

    /// Subscribes to the state of the watch for readers that need that generation.
    fn notify(&mut self, needs: u64) -> watch::Receiver<WatchState> {
        if let Some(states) = self.states.iter().find(|states| states.needs == needs) {
            return states.state.subscribe();
        }
        let (sender, state) = watch::channel(self.state_for(needs));
        self.states.push(SharedState {
            needs,
            state: sender,
        });
        state
    }

    fn leave(&mut self, number: u64) {
        let subscriptions = &mut self.subscriptions;
        subscriptions.retain(|subscription| subscription.number != number);
        self.states.retain(|states| {
            subscriptions
                .iter()
                .any(|subscription| subscription.needs == states.needs)
        });
    }

    fn state_for(&self, needs: u64) -> WatchState {
        let was_synced = self.synced.is_some_and(|synced| synced >= needs);
        match &self.problem {
            Some(problem) => WatchState::Failing {
                problem: problem.clone(),
                was_synced,
            },
            None if was_synced => WatchState::Synced,
            None => WatchState::Starting,
        }
    }
}

/// An informer with its task, which is aborted when the informer is dropped.
pub(super) struct Informer<R> {
    pub(super) shared: Arc<Shared<R>>,
    task: AbortHandle,
}

impl<R> Drop for Informer<R> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<R: Record> Informer<R> {
    pub(super) fn new(shared: Arc<Shared<R>>, task: AbortHandle) -> Self {
        Self { shared, task }
    }

    /// Adds a subscription for a reader of `paths`. If it needs more than is kept so far, another list is requested.
    pub(super) fn join(
        self: Arc<Self>,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> Handle<R> {
        let shared = &self.shared;
        let mut readers = shared.readers.lock();
        if !readers.reading.spec.covers(paths) {
            let mut spec = readers.reading.spec.clone();
            spec.widen(paths);
            readers.reading = Reading::new::<R>(spec);
            readers.generation += 1;
            shared.nudge.notify_one();
        }
        readers.last_subscription += 1;
        let (number, needs) = (readers.last_subscription, readers.generation);
        let state = readers.notify(needs);
        readers.subscriptions.push(Subscription {
            number,
            needs,
            subscriber,
        });
        drop(readers);
        Handle::new(self, number, state)
    }
}
