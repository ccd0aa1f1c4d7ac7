//! A reader's handle of an informer: its records, and the state of the watch.

use std::{fmt, sync::Arc};

use orkestra_object::{GroupKind, ObjectKey, Uid, decode::Version, value::Node};
use tokio::sync::watch;

use super::{Informer, Shared};
use crate::requests::Served;
use crate::watch::{Record, WatchProblem, WatchState, Watched};

/// A reader's handle of an informer. When the last one is dropped, the watch ends and its memory is freed.
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
    pub(crate) fn new(
        informer: Arc<Informer<R>>,
        (subscription, state): (u64, watch::Receiver<WatchState>),
    ) -> Self {
        let shared = informer.shared.clone();
        Self {
            store: Store {
                shared,
                subscription,
            },
            state,
            informer,
        }
    }

    /// Its informer.
    pub(crate) fn informer(&self) -> &Arc<Informer<R>> {
        &self.informer
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

    /// The state of the watch, for the fields that this handle reads.
    pub fn state(&self) -> watch::Receiver<WatchState> {
        self.state.clone()
    }

    /// Waits until the store shows the state of the API server.
    pub async fn synced(&self) {
        // The sender lives as long as a subscription with the same needs, so the channel cannot be closed.
        let _ = self
            .state()
            .wait_for(|state| *state == WatchState::Synced)
            .await;
    }

    /// Returns when the first list is complete or has failed.
    pub async fn looked_at(&self) {
        // As above.
        let _ = self
            .state()
            .wait_for(|state| *state != WatchState::Starting)
            .await;
    }

    /// Returns the problem of the watch, and its kind.
    pub fn problem(&self) -> Option<(GroupKind, WatchProblem)> {
        match &*self.state.borrow() {
            WatchState::Failing { problem, .. } => {
                Some((self.served().group_kind(), problem.clone()))
            }
            WatchState::Starting | WatchState::Synced => None,
        }
    }

    /// Checks that the records can be used. Records that were read once stay usable while the API server does not answer.
    ///
    /// # Errors
    /// The reason, as a message for users.
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
                problem:
                    WatchProblem::Unavailable { message, .. } | WatchProblem::Forbidden { message },
                ..
            } => Err(message.clone()),
        }
    }

    /// True while it is not yet known whether the API server was restored to an older state.
    pub fn is_open(&self) -> bool {
        self.informer.shared.is_open()
    }

    /// Retries now instead of after the pause: the CRD has just appeared, or a permission was just granted.
    pub fn poke(&self) {
        self.informer.shared.nudge.notify_one();
    }
}

impl<R: Record> Drop for Handle<R> {
    fn drop(&mut self) {
        self.informer.shared.leave(self.store.subscription);
    }
}

/// The memory that is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// The number of records.
    pub records: usize,
    /// The bytes of the records and their indexes, without data that records share.
    pub bytes: usize,
}

impl std::ops::Add for MemoryUse {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl std::iter::Sum for MemoryUse {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |one, other| one + other)
    }
}

/// The records of an informer, as one of its readers sees them.
pub struct Store<R: Record> {
    shared: Arc<Shared<R>>,
    subscription: u64,
}

impl<R: Record> fmt::Debug for Store<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<R: Record> Store<R> {
    /// Returns the record of an object.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<R>> {
        self.shared.records().get(key)
    }

    /// Returns the records that belong to the object with that uid, sorted by key.
    pub fn owned_by(&self, uid: &Uid) -> Vec<(ObjectKey, Arc<R>)> {
        let owned = self.shared.records().owned_by(uid);
        owned
            .into_iter()
            .map(|record| (record.identity().key.clone(), record))
            .collect()
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.shared.records().len()
    }

    /// Records and their bytes, as held for this reader: records that several readers share count for the first one.
    pub fn held(&self) -> MemoryUse {
        if !self.shared.is_first(self.subscription) {
            return MemoryUse::default();
        }
        let (records, bytes) = self.shared.size();
        MemoryUse { records, bytes }
    }

    /// True if there are no records.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the keys of all records, unordered.
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.snapshot()
            .iter()
            .map(|record| record.identity().key.clone())
            .collect()
    }

    /// Returns all records, unordered.
    pub fn snapshot(&self) -> Vec<Arc<R>> {
        self.shared.records().all()
    }

    /// Adds the response to a write, so that the next read sees it, and returns the record that the store has now: that of the
    /// response, or a newer one. `None` if the watch has already reported the deletion of the object, or if the response is not
    /// an object.
    ///
    /// The handle's own subscriber is not notified: the caller knows of the write. All others are. If another client changed the
    /// object just before, so that the response includes that change, the watch notifies all subscribers when it reports it.
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
        self.shared.notify(change, Some(self.subscription));
        now
    }

    /// Notifies subscribers of the next state of an object after `known`, even if its record does not differ: a write over that
    /// state was refused, and the reason may be a field that no record has. At once if the store has a newer state.
    pub fn expect(&self, key: &ObjectKey, known: &Version) {
        let change = self.shared.records().expect(key, known);
        self.shared.notify(change, None);
    }

    /// Reports that a response is older than the state known before the request: the API server may have been restored to an
    /// older state, which the watch does not show. The informer then compares states.
    pub fn doubt(&self) {
        self.shared.doubt();
    }

    /// Removes the object of that uid, whose deletion a request found before the watch.
    pub fn gone(&self, key: &ObjectKey, uid: &Uid) {
        let change = self.shared.records().gone(key, uid);
        self.shared.notify(change, Some(self.subscription));
    }
}
