//! What the parts of one informer share: records, readers, and how the watch is doing.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use orkestra_core::{
    plan::{GroupKind, ObjectKey},
    reconcile::record::{Identity, Uid},
    value::{Node, Path, Sieve},
};
use tokio::{
    sync::{Notify, watch},
    task::AbortHandle,
};

use super::{Change, Record, Spec, Subscriber, WatchProblem, WatchState, Watched, store::Records};

/// One informer, without its task.
pub(super) struct Shared<R> {
    pub(super) watched: Watched,
    /// Objects in a page of a list.
    pub(super) page: u32,
    records: Mutex<Records<R>>,
    readers: Mutex<Readers<R>>,
    /// Wakes the task out of a pause, and to see whether a list is due.
    pub(super) nudge: Notify,
    pub(super) counts: Counts,
}

/// What an informer counts.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) lists: AtomicU64,
    pub(super) watches: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) panics: AtomicU64,
    pub(super) unreadable: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// How objects are read: into which records, and what of them is looked at for that.
pub(super) struct Reading {
    pub(super) spec: Spec,
    pub(super) sieve: Sieve,
}

impl Reading {
    fn new<R: Record>(spec: Spec) -> Arc<Self> {
        let sieve = R::looks_at(&spec);
        Arc::new(Self { spec, sieve })
    }
}

/// Who reads an informer, and what is kept for them.
struct Readers<R> {
    reading: Arc<Reading>,
    /// Grows with what is read; a list made for one serves every reader up to it.
    generation: u64,
    synced: Option<u64>,
    problem: Option<WatchProblem>,
    last_seat: u64,
    seats: Vec<Seat<R>>,
    /// What the seats are told, once for all that need the same.
    told: Vec<Told>,
}

/// How the watch is doing, for the seats that need a generation.
struct Told {
    needs: u64,
    state: watch::Sender<WatchState>,
}

/// One handle's place.
struct Seat<R> {
    number: u64,
    /// The generation of the spec that has all it reads.
    needs: u64,
    subscriber: Option<Subscriber<R>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<R: Record> Shared<R> {
    pub(super) fn new(watched: Watched, page: u32, paths: &[Path]) -> Self {
        let reading = Reading::new::<R>(Spec::new(watched.served.group_kind(), paths));
        let readers = Readers {
            reading,
            generation: 0,
            synced: None,
            problem: None,
            last_seat: 0,
            seats: Vec::new(),
            told: Vec::new(),
        };
        Self {
            watched,
            page,
            records: Mutex::new(Records::new()),
            readers: Mutex::new(readers),
            nudge: Notify::new(),
            counts: Counts::default(),
        }
    }

    /// The records, for one step at a time.
    pub(super) fn records(&self) -> MutexGuard<'_, Records<R>> {
        lock(&self.records)
    }

    /// How many records there are, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let records = self.records();
        (records.len(), records.bytes())
    }

    /// How to read records, and the generation of that.
    pub(super) fn reading(&self) -> (Arc<Reading>, u64) {
        let readers = lock(&self.readers);
        (readers.reading.clone(), readers.generation)
    }

    /// Whether somebody reads more than the last list was made for.
    pub(super) fn wants_list(&self) -> bool {
        let readers = lock(&self.readers);
        readers
            .synced
            .is_none_or(|synced| synced < readers.generation)
    }

    /// A list for that generation is complete.
    pub(super) fn synced(&self, generation: u64) {
        lock(&self.readers).publish(|readers| {
            readers.synced = Some(generation);
            readers.problem = None;
        });
    }

    /// The API server answers again.
    pub(super) fn healthy(&self) {
        lock(&self.readers).publish(|readers| readers.problem = None);
    }

    pub(super) fn failing(&self, problem: WatchProblem) {
        count(&self.counts.failures);
        lock(&self.readers).publish(|readers| readers.problem = Some(problem));
    }

    /// Reads a record. An object that cannot be read is passed over: its neighbours are still shown.
    pub(super) fn read(&self, object: &Node, spec: &Spec) -> Option<R> {
        match catch_unwind(AssertUnwindSafe(|| R::read(object, spec))) {
            Ok(Ok(record)) => return Some(record),
            Ok(Err(error)) => {
                count(&self.counts.unreadable);
                tracing::warn!(kind = %spec.kind, %error, "an object cannot be recorded");
            }
            Err(_) => {
                count(&self.counts.panics);
                let object = Identity::read(object)
                    .map(|id| id.key.to_string())
                    .unwrap_or_default();
                tracing::error!(kind = %spec.kind, object, "recording an object panicked");
            }
        }
        None
    }

    /// Tells subscribers, all but the one in seat `except`; no lock is held meanwhile.
    pub(super) fn tell(&self, changes: impl IntoIterator<Item = Change<R>>, except: Option<u64>) {
        let mut subscribers: Option<Vec<Subscriber<R>>> = None;
        for change in changes {
            let subscribers =
                subscribers.get_or_insert_with(|| lock(&self.readers).subscribers(except));
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
    fn subscribers(&self, except: Option<u64>) -> Vec<Subscriber<R>> {
        let seats = self.seats.iter().filter(|seat| Some(seat.number) != except);
        seats.filter_map(|seat| seat.subscriber.clone()).collect()
    }

    fn publish(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        for told in &self.told {
            let state = self.state_for(told.needs);
            told.state.send_if_modified(|last| {
                let differs = *last != state;
                *last = state;
                differs
            });
        }
    }

    /// Tells how the watch is doing for those who need that generation.
    fn tell(&mut self, needs: u64) -> watch::Receiver<WatchState> {
        if let Some(told) = self.told.iter().find(|told| told.needs == needs) {
            return told.state.subscribe();
        }
        let (sender, state) = watch::channel(self.state_for(needs));
        self.told.push(Told {
            needs,
            state: sender,
        });
        state
    }

    /// Gives a seat back.
    fn leave(&mut self, number: u64) {
        let seats = &mut self.seats;
        seats.retain(|seat| seat.number != number);
        self.told
            .retain(|told| seats.iter().any(|seat| seat.needs == told.needs));
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

/// An informer with its task, which ends with it.
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

    /// Takes a seat for somebody who reads `paths`. More than is kept so far asks for another list.
    pub(super) fn join(
        self: Arc<Self>,
        paths: &[Path],
        subscriber: Option<Subscriber<R>>,
    ) -> Handle<R> {
        let shared = self.shared.clone();
        let mut readers = lock(&shared.readers);
        if !readers.reading.spec.covers(paths) {
            let mut spec = readers.reading.spec.clone();
            spec.widen(paths);
            readers.reading = Reading::new::<R>(spec);
            readers.generation += 1;
            shared.nudge.notify_one();
        }
        readers.last_seat += 1;
        let (number, needs) = (readers.last_seat, readers.generation);
        let state = readers.tell(needs);
        readers.seats.push(Seat {
            number,
            needs,
            subscriber,
        });
        drop(readers);
        Handle {
            store: Store {
                shared,
                seat: number,
            },
            state,
            informer: self,
        }
    }
}

/// A reader's hold on an informer. With the last one the watch ends and its memory is freed.
pub struct Handle<R: Record> {
    store: Store<R>,
    state: watch::Receiver<WatchState>,
    informer: Arc<Informer<R>>,
}

impl<R: Record> fmt::Debug for Handle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle")
            .field(&self.watched().served.plural)
            .finish()
    }
}

impl<R: Record> Handle<R> {
    /// What is watched.
    pub fn watched(&self) -> &Watched {
        &self.informer.shared.watched
    }

    /// The records.
    pub fn store(&self) -> &Store<R> {
        &self.store
    }

    /// How the watch is doing, as far as this handle's reads go.
    pub fn state(&self) -> watch::Receiver<WatchState> {
        self.state.clone()
    }

    /// Waits until the store shows what the API server has.
    pub async fn synced(&self) {
        // The sender lives as long as a seat that needs what this handle's does, so it cannot be closed.
        let _ = self
            .state()
            .wait_for(|state| *state == WatchState::Synced)
            .await;
    }

    /// Returns when everything was read once, or cannot be.
    pub async fn looked_at(&self) {
        // As above.
        let _ = self
            .state()
            .wait_for(|state| *state != WatchState::Starting)
            .await;
    }

    /// What keeps the watch from its work, and of which kind it is.
    pub fn trouble(&self) -> Option<(GroupKind, WatchProblem)> {
        match &*self.state.borrow() {
            WatchState::Failing { problem, .. } => {
                Some((self.watched().served.group_kind(), problem.clone()))
            }
            WatchState::Starting | WatchState::Synced => None,
        }
    }

    /// Why it cannot be told what there is, if it cannot. What was read once stays true as far as anybody can tell while the
    /// API server does not answer.
    ///
    /// # Errors
    /// The reason, for people.
    pub fn readable(&self) -> Result<(), String> {
        match &*self.state.borrow() {
            WatchState::Synced
            | WatchState::Failing {
                problem: WatchProblem::Unavailable { .. },
                was_synced: true,
            } => Ok(()),
            WatchState::Starting => Err("they are being read for the first time".to_owned()),
            WatchState::Failing {
                problem: WatchProblem::NotServed,
                ..
            } => Err("the API server does not serve them".to_owned()),
            WatchState::Failing {
                problem: WatchProblem::Unavailable { message } | WatchProblem::Forbidden { message },
                ..
            } => Err(message.clone()),
        }
    }

    /// Tries again now what is waiting to be tried again: the CRD has just appeared, the right was just granted.
    pub fn poke(&self) {
        self.informer.shared.nudge.notify_one();
    }
}

impl<R: Record> Drop for Handle<R> {
    fn drop(&mut self) {
        lock(&self.informer.shared.readers).leave(self.store.seat);
    }
}

/// How much is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Records.
    pub records: usize,
    /// Bytes of them and of what finds them, without what records share.
    pub bytes: usize,
}

impl std::ops::Add for Held {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl std::iter::Sum for Held {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| one + other)
    }
}

/// The records of an informer, as one of its readers sees them.
pub struct Store<R: Record> {
    shared: Arc<Shared<R>>,
    seat: u64,
}

impl<R: Record> fmt::Debug for Store<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<R: Record> Store<R> {
    /// The record of that object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<R>> {
        self.shared.records().get(key)
    }

    /// The records that belong to the object with that uid, sorted by key.
    pub fn owned_by(&self, uid: &Uid) -> Vec<(ObjectKey, Arc<R>)> {
        let owned = self.shared.records().owned_by(uid);
        owned
            .into_iter()
            .map(|record| (record.identity().key.clone(), record))
            .collect()
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.shared.records().len()
    }

    /// Records and their bytes, as held for this reader: those that several share count at the one that came first.
    pub fn held(&self) -> Held {
        let first = lock(&self.shared.readers)
            .seats
            .first()
            .map(|seat| seat.number);
        if first != Some(self.seat) {
            return Held::default();
        }
        let (records, bytes) = self.shared.size();
        Held { records, bytes }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of all records, in no order.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.snapshot()
            .iter()
            .map(|record| record.identity().key.clone())
            .collect()
    }

    /// All records, in no order.
    pub fn snapshot(&self) -> Vec<Arc<R>> {
        self.shared.records().all()
    }

    /// Takes in the answer to a write, so that the next look sees it, and returns the record that the store has now: the
    /// answer's, or a newer one. None where the watch already told that the object is gone, or where it is not an object.
    ///
    /// The handle's own subscriber is not told: whoever wrote knows. All others are. Should somebody else have changed
    /// the object just before, so that the answer shows that change too, the watch tells everybody when it comes to it.
    pub fn answer(&self, object: &Node) -> Option<Arc<R>> {
        let (reading, _) = self.shared.reading();
        let record = self.shared.read(object, &reading.spec)?;
        let scope = &self.shared.watched.scope;
        if scope.namespace.is_some()
            && scope.namespace.as_deref() != record.identity().key.namespace.as_deref()
        {
            return None;
        }
        let (now, change) = self.shared.records().answer(record);
        self.shared.tell(change, Some(self.seat));
        now
    }

    /// Takes in that the object of that uid is no more, which a request found out before the watch.
    pub fn gone(&self, key: &ObjectKey, uid: &Uid) {
        let change = self.shared.records().gone(key, uid);
        self.shared.tell(change, Some(self.seat));
    }
}
