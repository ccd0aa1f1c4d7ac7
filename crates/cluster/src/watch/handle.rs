//! What a reader of an informer holds: its records, and how the watch is doing.

use std::{fmt, sync::Arc};

use orkestra_core::{
    plan::{GroupKind, ObjectKey},
    reconcile::record::Uid,
    value::Node,
};
use tokio::sync::watch;

use super::{
    Record, WatchProblem, WatchState, Watched,
    informer::{Informer, Shared},
};
use crate::wire::Served;

/// A reader's hold on an informer. With the last one the watch ends and its memory is freed.
pub struct Handle<R: Record> {
    store: Store<R>,
    state: watch::Receiver<WatchState>,
    informer: Arc<Informer<R>>,
}

impl<R: Record> fmt::Debug for Handle<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle")
            .field(&self.served().plural)
            .finish()
    }
}

impl<R: Record> Handle<R> {
    pub(super) fn new(
        informer: Arc<Informer<R>>,
        seat: u64,
        state: watch::Receiver<WatchState>,
    ) -> Self {
        let shared = informer.shared.clone();
        Self {
            store: Store { shared, seat },
            state,
            informer,
        }
    }

    /// What is watched.
    pub fn watched(&self) -> &Watched {
        &self.informer.shared.watched
    }

    /// The kind that is watched.
    pub fn served(&self) -> &Served {
        &self.watched().served
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
                Some((self.served().group_kind(), problem.clone()))
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

    /// Whether the API server may have been put back to an older state, and it is about to be found out.
    pub fn is_open(&self) -> bool {
        self.informer.shared.is_open()
    }

    /// Tries again now what is waiting to be tried again: the CRD has just appeared, the right was just granted.
    pub fn poke(&self) {
        self.informer.shared.nudge.notify_one();
    }
}

impl<R: Record> Drop for Handle<R> {
    fn drop(&mut self) {
        self.informer.shared.leave(self.store.seat);
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
        if !self.shared.is_first(self.seat) {
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
        let record = self.shared.read(object, &reading.spec).ok()?;
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

    /// An answer is older than what was known before the request: the API server may have been put back to an older state, which
    /// the watch does not show. It is looked at.
    pub fn doubt(&self) {
        self.shared.doubt();
    }

    /// Takes in that the object of that uid is no more, which a request found out before the watch.
    pub fn gone(&self, key: &ObjectKey, uid: &Uid) {
        let change = self.shared.records().gone(key, uid);
        self.shared.tell(change, Some(self.seat));
    }
}
