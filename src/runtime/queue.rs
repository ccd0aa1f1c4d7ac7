//! A work queue of keys: every key at most once in it, and never two workers on one key.
//!
//! ```text
//!  add, Changed ──► changed lane ─┐
//!  add, Resync ───► resync lane ──┤ take ──► Taken ──► a worker's pass
//!                        ▲        │                        │ drop
//!  add_after ─┐          │        │                        ▼
//!  retry ─────┴─► delayed┘◄───────┴ breaker      added meanwhile? back into its lane
//! ```
//!
//! A key that nobody wants a pass over costs nothing, but for its failure count while it fails, and for its breaker's
//! bucket in the minute after a pass. Time is tokio's, so tests may pause it.

mod state;
#[cfg(test)]
mod tests;
mod workers;

use std::{
    fmt,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use orkestra_core::plan::Backoff;
use orkestra_ground::Entropy;
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use self::state::{Next, State};
pub use self::workers::{Crew, SURPLUS_IDLE, Workers};

/// Part of a backoff that jitter may take off it.
const BACKOFF_SPREAD: f64 = 0.2;
/// Passes over one key that may follow each other without a pause.
pub const BREAKER_BURST: u32 = 60;
/// After the burst, one pass over a key in this time: a status that advances step by step is through long before.
pub const BREAKER_REFILL: Duration = Duration::from_secs(1);
/// Changed keys taken in a row before one in resync has its turn.
pub const RESYNC_SHARE: u32 = 16;

/// Which of the two lanes a key waits in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Something changed: first.
    Changed = 0,
    /// The safety net: when nothing changed, and once in [`RESYNC_SHARE`] turns.
    Resync = 1,
}

/// Why a key is in the queue, for metrics; the most important first. A pass must not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Something changed.
    Changed,
    /// A time came that a pass asked for.
    Timer,
    /// The last pass failed.
    Retry,
    /// The safety net.
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
pub struct Queue<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    state: Mutex<State<K>>,
    wake: Notify,
    entropy: Entropy,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<K> fmt::Debug for Queue<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Queue")
    }
}

impl<K: Clone + Eq + Hash> Queue<K> {
    /// An empty queue that draws its jitter from `entropy`.
    pub fn new(entropy: Entropy) -> Self {
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(State::new()),
                wake: Notify::new(),
                entropy,
            }),
        }
    }

    /// Wants a pass over `key` as soon as may be. A key in the resync lane moves up when it changes; a key that a worker
    /// has goes back when the worker is done.
    pub fn add(&self, key: K, lane: Lane) {
        let cause = match lane {
            Lane::Changed => Cause::Changed,
            Lane::Resync => Cause::Resync,
        };
        self.inner.change(|state, now| state.add(key, cause, now));
    }

    /// Wants a pass over `key` after `delay`. Of two delays the earlier stays; a pass that starts before drops it, since
    /// it asks anew for what it wants.
    pub fn add_after(&self, key: K, delay: Duration) {
        self.inner
            .change(|state, now| state.add_at(key, Cause::Timer, now + delay, now));
    }

    /// Counts a failed pass over `key` and wants another one after its backoff, which grows with every failure in a row,
    /// less up to a fifth. However often a key fails, it is never dropped.
    pub fn retry(&self, key: K) {
        let entropy = &self.inner.entropy;
        self.inner.change(|state, now| {
            state.retry(key, now, |delay| entropy.shorten(delay, BACKOFF_SPREAD));
        });
    }

    /// A pass over `key` succeeded: its failures are forgotten.
    pub fn forget(&self, key: &K) {
        self.inner.change(|state, now| state.forget(key, now));
    }

    /// The object is gone: drops every trace of `key`. A pass that runs over it ends undisturbed; what it asks for
    /// (`add_after`, `retry`) is ignored, while [`Queue::add`] brings the key back.
    pub fn remove(&self, key: &K) {
        self.inner.change(|state, _| state.remove(key));
    }

    /// Waits for the next key. None after [`Queue::shutdown`]. May be cancelled at any time without losing a key.
    pub async fn take(&self) -> Option<Taken<K>> {
        loop {
            // Registered before the look: what is added in between wakes it.
            let mut wake = std::pin::pin!(self.inner.wake.notified());
            wake.as_mut().enable();
            match self.inner.change(State::next) {
                Next::Closed => return None,
                Next::Job(job) => {
                    return Some(Taken {
                        key: job.key,
                        waited: job.waited,
                        cause: job.cause,
                        inner: Arc::clone(&self.inner),
                    });
                }
                Next::Wait(None) => wake.await,
                Next::Wait(Some(at)) => {
                    tokio::select! {
                        () = wake => {}
                        () = sleep_until(at) => {}
                    }
                }
            }
        }
    }

    /// Holds the queue: no key is taken, and none is lost, until it is let go. Passes that run end undisturbed.
    pub fn hold(&self, held: bool) {
        self.inner.change(|state, _| state.hold(held));
        if !held {
            self.inner.wake.notify_waiters();
        }
    }

    /// Holds back every key, those that are let through as well: nothing can be done for any of them at the moment.
    pub fn pause(&self, paused: bool) {
        self.inner.change(|state, _| state.pause(paused));
        if !paused {
            self.inner.wake.notify_waiters();
        }
    }

    /// Says whether `key` is taken also while the queue is held; a key that is removed no longer is.
    pub fn let_through(&self, key: &K, through: bool) {
        self.inner
            .change(|state, _| state.let_through(key, through));
    }

    /// How long a key waits from now on whose pass failed; waits that have begun stay.
    pub fn set_backoff(&self, backoff: Backoff) {
        self.inner.change(|state, _| state.set_backoff(backoff));
    }

    /// Ends every [`Queue::take`], now and later, and drops what waits. Passes that run end undisturbed.
    pub fn shutdown(&self) {
        self.inner.change(|state, _| state.close());
        self.inner.wake.notify_waiters();
    }

    /// Keys that wait for a worker.
    pub fn depth(&self) -> usize {
        self.inner.look(State::depth)
    }

    /// Keys that wait for a time: backoff, breaker, [`Queue::add_after`].
    pub fn delayed(&self) -> usize {
        self.inner.look(State::delayed)
    }

    /// How long the longest waiting key has waited for a worker.
    pub fn oldest(&self) -> Option<Duration> {
        let since = self.inner.look(State::oldest)?;
        Some(Instant::now().saturating_duration_since(since))
    }

    /// Keys that workers have.
    pub fn busy(&self) -> usize {
        self.inner.look(State::busy)
    }

    /// Which keys workers have.
    pub fn running(&self) -> Vec<K> {
        self.inner.look(State::running)
    }

    /// How often the breaker has held a key off.
    pub fn slowed(&self) -> u64 {
        self.inner.look(State::slowed)
    }

    /// Whether the breaker holds `key` off at the moment.
    pub fn is_slowed(&self, key: &K) -> bool {
        self.inner
            .look(|state| state.is_slowed(key, Instant::now()))
    }

    /// Failed passes over `key` in a row.
    pub fn failures(&self, key: &K) -> u32 {
        self.inner.look(|state| state.failures(key))
    }

    /// Keys that cost memory: all but the idle ones.
    pub fn known(&self) -> usize {
        self.inner.look(State::known)
    }
}

impl<K: Clone + Eq + Hash> Inner<K> {
    fn look<T>(&self, f: impl FnOnce(&State<K>) -> T) -> T {
        f(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the state, then wakes whom it concerns: one worker for a key more, every worker for an earlier time, since
    /// each sleeps until the earliest time that it knew of.
    fn change<T>(&self, f: impl FnOnce(&mut State<K>, Instant) -> T) -> T {
        let (result, more, earlier) = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A key that one worker has; nobody else gets it until this is dropped.
///
/// Dropped in a panic it counts as a failure: the key is freed and retried after its backoff. An `async move` block that
/// names nothing of it but a field that is `Copy` does not hold it: hand it over whole.
pub struct Taken<K: Clone + Eq + Hash> {
    /// Which.
    pub key: K,
    /// How long it waited for a worker.
    pub waited: Duration,
    /// Why it was in the queue; for metrics.
    pub cause: Cause,
    inner: Arc<Inner<K>>,
}

impl<K: Clone + Eq + Hash + fmt::Debug> fmt::Debug for Taken<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Taken").field(&self.key).finish()
    }
}

impl<K: Clone + Eq + Hash> Taken<K> {
    /// The pass is over; the same as dropping it.
    pub fn done(self) {}
}

impl<K: Clone + Eq + Hash> Drop for Taken<K> {
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
