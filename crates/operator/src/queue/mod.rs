//! A work queue of keys: a key is queued at most once, and never processed by two workers at a time.
//!
//! ```text
//!  add, Changed ──► changed lane ─┐
//!  add, Resync ───► resync lane ──┤ take ──► Taken ──► a worker's pass
//!                        ▲        │                        │ drop
//!  add_after ─┐          │        │                        ▼
//!  retry ─────┴─► delayed┘◄───────┴ breaker      added meanwhile? back into its lane
//! ```
//!
//! In each lane, the groups of keys take turns ([`QueueKey`]): the wait of a key does not grow with the number of waiting keys of
//! another namespace.
//!
//! An idle key uses no memory, except for its failure count while it fails and its breaker's bucket in the minute after a
//! pass. Time is tokio's, so tests can pause it.

mod state;
#[cfg(test)]
mod tests;
mod turns;
mod workers;

use std::{fmt, sync::Arc, time::Duration};

use orkestra_ground::Entropy;
use orkestra_plan::BackoffPlan;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use self::state::{NextKey, QueueState};
pub use self::turns::QueueKey;
pub use self::workers::{QueueWorkers, SURPLUS_IDLE, WorkerCount};

/// The fraction of a backoff that jitter may remove.
const BACKOFF_SPREAD: f64 = 0.2;
/// How many passes over one key may follow each other without a pause.
pub const BREAKER_BURST: u32 = 60;
/// The interval between passes over a key after the burst: a status that advances step by step finishes long before.
pub const BREAKER_REFILL: Duration = Duration::from_secs(1);
/// How many changed keys are taken in a row before one from the resync lane.
pub const RESYNC_SHARE: u32 = 16;

/// The lane in which a key waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Something changed: taken first.
    Changed = 0,
    /// Resync: taken if no key changed, and once in [`RESYNC_SHARE`] turns.
    Resync = 1,
}

/// Why a key is in the queue, for metrics; the most important first. A pass must not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Something changed.
    Changed,
    /// The time came for which a pass asked.
    Timer,
    /// The last pass failed.
    Retry,
    /// Periodic resync.
    Resync,
}

impl Cause {
    fn lane(self) -> Lane {
        match self {
            Self::Changed | Self::Timer | Self::Retry => Lane::Changed,
            Self::Resync => Lane::Resync,
        }
    }
}

/// The queue; clones share it.
pub struct WorkQueue<K: QueueKey> {
    inner: Arc<Inner<K>>,
}

struct Inner<K: QueueKey> {
    state: Mutex<QueueState<K>>,
    wake: Notify,
    entropy: Entropy,
}

impl<K: QueueKey> Clone for WorkQueue<K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<K: QueueKey> fmt::Debug for WorkQueue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl<K: QueueKey> WorkQueue<K> {
    /// Creates an empty queue that draws its jitter from `entropy`.
    pub fn new(entropy: Entropy) -> Self {
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(QueueState::new()),
                wake: Notify::new(),
                entropy,
            }),
        }
    }

    /// Requests a pass over `key` as soon as possible. A key in the resync lane moves up when it changes; a key that a worker
    /// has taken is queued again when the worker is done.
    pub fn add(&self, key: K, lane: Lane) {
        let cause = match lane {
            Lane::Changed => Cause::Changed,
            Lane::Resync => Cause::Resync,
        };
        self.inner.change(|state, now| state.add(key, cause, now));
    }

    /// Requests a pass over `key` after `delay`. The earlier of two delays is kept; a pass that starts before drops it, since
    /// it decides again.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.inner
            .change(|state, now| state.add_at(key, Cause::Timer, now + delay, now));
    }

    /// Counts a failed pass over `key` and requests another one after its backoff, which grows with every failure in a row,
    /// minus up to a fifth. A key is never dropped, however often it fails.
    pub fn retry(&self, key: K) {
        let entropy = &self.inner.entropy;
        self.inner.change(|state, now| {
            state.retry(key, now, |delay| entropy.shorten(delay, BACKOFF_SPREAD));
        });
    }

    /// Resets the failure count of `key` after a successful pass.
    pub fn forget(&self, key: &K) {
        self.inner.change(|state, now| state.forget(key, now));
    }

    /// Removes all state of `key`, whose object is gone. A running pass is not affected; its requests (`add_after`, `retry`)
    /// are ignored, while [`WorkQueue::add`] adds the key again.
    pub fn remove(&self, key: &K) {
        self.inner.change(|state, _| state.remove(key));
    }

    /// Waits for the next key. None after [`WorkQueue::shutdown`]. Cancel-safe: no key is lost.
    pub async fn take(&self) -> Option<TakenKey<K>> {
        loop {
            // Registered before the check: a key that is added in between wakes it.
            let mut wake = std::pin::pin!(self.inner.wake.notified());
            wake.as_mut().enable();
            match self.inner.change(QueueState::next) {
                NextKey::Closed => return None,
                NextKey::Job(job) => {
                    return Some(TakenKey {
                        key: job.key,
                        waited: job.waited,
                        cause: job.cause,
                        inner: Arc::clone(&self.inner),
                    });
                }
                NextKey::Wait(None) => wake.await,
                NextKey::Wait(Some(at)) => {
                    tokio::select! {
                        () = wake => {}
                        // Boxed: most queues have no key for later.
                        () = Box::pin(sleep_until(at)) => {}
                    }
                }
            }
        }
    }

    /// Holds or releases the queue: while it is held, no key is taken and none is lost. Running passes are not affected.
    pub fn hold(&self, held: bool) {
        self.inner.change(|state, _| state.hold(held));
        if !held {
            self.inner.wake.notify_waiters();
        }
    }

    /// Pauses or resumes the queue for all keys, including those that pass a held queue: no key can be processed at the
    /// moment.
    pub fn pause(&self, paused: bool) {
        self.inner.change(|state, _| state.pause(paused));
        if !paused {
            self.inner.wake.notify_waiters();
        }
    }

    /// Sets whether `key` is taken even while the queue is held; [`WorkQueue::remove`] resets this.
    pub fn let_through(&self, key: &K, through: bool) {
        self.inner
            .change(|state, _| state.let_through(key, through));
    }

    /// Sets the backoff for keys whose pass fails from now on; delays that have begun stay.
    pub fn set_backoff(&self, backoff: BackoffPlan) {
        self.inner.change(|state, _| state.set_backoff(backoff));
    }

    /// Ends every [`WorkQueue::take`], now and later, and drops waiting keys. Running passes are not affected.
    pub fn shutdown(&self) {
        self.inner.change(|state, _| state.close());
        self.inner.wake.notify_waiters();
    }

    /// Returns how many keys wait for a worker.
    pub fn depth(&self) -> usize {
        self.inner.look(QueueState::depth)
    }

    /// Returns how many keys wait for a time: backoff, breaker, [`WorkQueue::add_after`].
    pub fn delayed(&self) -> usize {
        self.inner.look(QueueState::delayed)
    }

    /// Returns how long the longest waiting key has waited for a worker.
    pub fn oldest(&self) -> Option<Duration> {
        let since = self.inner.look(QueueState::oldest)?;
        Some(Instant::now().saturating_duration_since(since))
    }

    /// Returns how many keys workers have taken.
    pub fn busy(&self) -> usize {
        self.inner.look(QueueState::busy)
    }

    /// Returns the keys that workers have taken.
    pub fn running(&self) -> Vec<K> {
        self.inner.look(QueueState::running)
    }

    /// Returns how often the breaker has delayed a key.
    pub fn slowed(&self) -> u64 {
        self.inner.look(QueueState::slowed)
    }

    /// True if the breaker delays `key` at the moment.
    pub fn is_slowed(&self, key: &K) -> bool {
        self.inner
            .look(|state| state.is_slowed(key, Instant::now()))
    }

    /// Returns the number of failed passes over `key` in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.inner.look(|state| state.failures(key))
    }

    /// Returns how many keys use memory: all but idle ones.
    pub fn known(&self) -> usize {
        self.inner.look(QueueState::known)
    }
}

impl<K: QueueKey> Inner<K> {
    fn look<T>(&self, f: impl FnOnce(&QueueState<K>) -> T) -> T {
        f(&self.state.lock())
    }

    /// Changes the state, then wakes the workers concerned: one worker for a new key, every worker for an earlier time, since
    /// each sleeps until the earliest time known to it.
    fn change<T>(&self, f: impl FnOnce(&mut QueueState<K>, Instant) -> T) -> T {
        let (result, more, earlier) = {
            let mut state = self.state.lock();
            let (depth, due) = (state.depth(), state.due());
            let result = f(&mut state, Instant::now());
            let earlier = match (state.due(), due) {
                (Some(now), Some(before)) => now < before,
                (now, before) => now.is_some() && before.is_none(),
            };
            (result, state.depth().saturating_sub(depth), earlier)
        };
        if earlier {
            self.wake.notify_waiters();
        }
        for _ in 0..more {
            self.wake.notify_one();
        }
        result
    }
}

/// A key taken by one worker; no other worker gets it until this is dropped.
///
/// If dropped in a panic, it counts as a failure: the key is freed and retried after its backoff. An `async move` block that
/// uses only a `Copy` field does not capture the whole value: move it in explicitly.
pub struct TakenKey<K: QueueKey> {
    /// The key.
    pub key: K,
    /// How long it waited for a worker.
    pub waited: Duration,
    /// Why it was in the queue, for metrics.
    pub cause: Cause,
    inner: Arc<Inner<K>>,
}

impl<K: QueueKey + fmt::Debug> fmt::Debug for TakenKey<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TakenKey").field(&self.key).finish()
    }
}

impl<K: QueueKey> TakenKey<K> {
    /// Ends the pass; the same as dropping it.
    pub fn done(self) {}
}

impl<K: QueueKey> Drop for TakenKey<K> {
    fn drop(&mut self) {
        let Inner { entropy, .. } = &*self.inner;
        self.inner.change(|state, now| {
            if std::thread::panicking() {
                state.retry(self.key.clone(), now, |delay| {
                    entropy.shorten(delay, BACKOFF_SPREAD)
                });
            }
            state.done(&self.key, now);
        });
    }
}
