//! The decisions of the queue, without a lock or a clock: every call gets the time as an argument.
//!
//! One file: one state machine, whose invariants span all of its fields.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use orkestra_plan::BackoffPlan;
use tokio::time::Instant;

use super::{BREAKER_BURST, BREAKER_REFILL, Cause, QueueKey, RESYNC_SHARE, turns::WaitingKeys};

/// How long after its last pass a key may be dropped: by then its bucket is full again.
const SWEEP_EVERY: Duration = BREAKER_REFILL.saturating_mul(BREAKER_BURST + 1);

/// The state of the keys that are not idle.
pub(crate) struct QueueState<K: QueueKey> {
    entries: HashMap<K, KeyState>,
    /// Keys that a worker may take: changed ones, then those in resync.
    lanes: [WaitingKeys<K>; 2],
    delayed: BTreeMap<(Instant, u64), K>,
    last_ticket: u64,
    /// Changed keys taken since the last one from resync.
    changed_in_row: u32,
    running: usize,
    slowed: u64,
    sweep_at: Option<Instant>,
    backoff: BackoffPlan,
    /// No key is taken for now, except those in `through`.
    held: bool,
    /// No key at all is taken for now.
    paused: bool,
    /// Keys that are taken even while the queue is held.
    through: HashSet<K>,
    /// The group of the last key taken while the queue was held.
    last_through: Option<K::Group>,
    closed: bool,
}

struct KeyState {
    running: bool,
    /// Removed while it ran: only a new `add` brings it back.
    gone: bool,
    /// Delayed by the breaker since its last pass.
    held: bool,
    wanted: Option<WantedWorkers>,
    delay: Option<Delay>,
    failures: u32,
    /// The token bucket: it is full once this has passed, and each pass moves it by one refill.
    spent_until: Instant,
}

#[derive(Clone, Copy)]
struct WantedWorkers {
    cause: Cause,
    since: Instant,
    /// Its place in the lane; none while the key runs.
    ticket: Option<u64>,
}

#[derive(Clone, Copy)]
struct Delay {
    at: Instant,
    ticket: u64,
    cause: Cause,
}

/// A key for a worker.
pub(crate) struct Job<K> {
    pub(crate) key: K,
    pub(crate) cause: Cause,
    pub(crate) waited: Duration,
}

/// The result of `next`.
pub(crate) enum NextKey<K> {
    /// A key to process.
    Job(Job<K>),
    /// No key before that time, or before one is added.
    Wait(Option<Instant>),
    /// The queue is closed.
    Closed,
}

impl KeyState {
    fn new(now: Instant) -> Self {
        Self {
            running: false,
            gone: false,
            held: false,
            wanted: None,
            delay: None,
            failures: 0,
            spent_until: now,
        }
    }

    /// Returns when the breaker allows the next pass.
    fn allowed_at(&self) -> Instant {
        let burst = BREAKER_REFILL * (BREAKER_BURST - 1);
        self.spent_until
            .checked_sub(burst)
            .unwrap_or(self.spent_until)
    }

    /// True if the entry exists only for its bucket.
    fn is_idle(&self) -> bool {
        !self.running && self.wanted.is_none() && self.delay.is_none() && self.failures == 0
    }
}

impl<K: QueueKey> QueueState<K> {
    pub(crate) fn new() -> Self {
        Self {
            entries: HashMap::new(),
            lanes: Default::default(),
            delayed: BTreeMap::new(),
            last_ticket: 0,
            changed_in_row: 0,
            running: 0,
            slowed: 0,
            sweep_at: None,
            backoff: BackoffPlan::default(),
            held: false,
            paused: false,
            through: HashSet::new(),
            last_through: None,
            closed: false,
        }
    }

    /// Requests a pass over `key`; the more important of two causes is kept.
    pub(crate) fn add(&mut self, key: K, cause: Cause, now: Instant) {
        if self.closed {
            return;
        }
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| KeyState::new(now));
        entry.gone = false;
        let moved = match entry.wanted {
            Some(wanted) if wanted.cause <= cause => return,
            Some(wanted) if wanted.cause.lane() == cause.lane() => {
                entry.wanted = Some(WantedWorkers { cause, ..wanted });
                return;
            }
            before => before.and_then(|wanted| Some((wanted.cause.lane(), wanted.ticket?))),
        };
        if let Some((lane, ticket)) = moved {
            self.lanes[lane as usize].remove(ticket, &key);
        }
        let ticket = (!entry.running).then(|| {
            self.last_ticket += 1;
            self.last_ticket
        });
        entry.wanted = Some(WantedWorkers {
            cause,
            since: now,
            ticket,
        });
        if let Some(ticket) = ticket {
            self.lanes[cause.lane() as usize].insert(ticket, key);
        }
    }

    /// Requests a pass over `key` at `at`; the earlier of two times is kept.
    pub(crate) fn add_at(&mut self, key: K, cause: Cause, at: Instant, now: Instant) {
        if self.closed {
            return;
        }
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| KeyState::new(now));
        if entry.gone {
            return;
        }
        if let Some(delay) = entry.delay {
            if delay.at <= at {
                return;
            }
            self.delayed.remove(&(delay.at, delay.ticket));
        }
        self.last_ticket += 1;
        let ticket = self.last_ticket;
        entry.delay = Some(Delay { at, ticket, cause });
        self.delayed.insert((at, ticket), key);
    }

    /// Counts a failure of `key` and requests another pass after its backoff; `shorten` draws the jitter.
    pub(crate) fn retry(
        &mut self,
        key: K,
        now: Instant,
        shorten: impl FnOnce(Duration) -> Duration,
    ) {
        let entry = self
            .entries
            .entry(key.clone())
            .or_insert_with(|| KeyState::new(now));
        if entry.gone {
            return;
        }
        let whole = wait(self.backoff, entry.failures);
        entry.failures = entry.failures.saturating_add(1);
        let delay = shorten(whole).max(self.backoff.first);
        self.add_at(key, Cause::Retry, now + delay, now);
    }

    /// Resets the failure count: the next failure starts with the shortest backoff.
    pub(crate) fn forget(&mut self, key: &K, now: Instant) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.failures = 0;
        }
        self.drop_if_idle(key, now);
    }

    /// Removes all state of `key`; a running pass is not affected.
    pub(crate) fn remove(&mut self, key: &K) {
        self.through.remove(key);
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        if let Some(WantedWorkers {
            cause,
            ticket: Some(ticket),
            ..
        }) = entry.wanted.take()
        {
            self.lanes[cause.lane() as usize].remove(ticket, key);
        }
        if let Some(delay) = entry.delay.take() {
            self.delayed.remove(&(delay.at, delay.ticket));
        }
        entry.failures = 0;
        entry.gone = true;
        if !entry.running {
            self.entries.remove(key);
        }
    }

    /// Returns the next key that a worker may take. This drops its pending delay: the pass decides again.
    pub(crate) fn next(&mut self, now: Instant) -> NextKey<K> {
        if self.closed {
            return NextKey::Closed;
        }
        self.promote(now);
        self.sweep(now);
        while let Some(key) = self.pop() {
            let Some(entry) = self.entries.get_mut(&key) else {
                continue;
            };
            let Some(wanted) = entry.wanted.take() else {
                continue;
            };
            let allowed_at = entry.allowed_at();
            if allowed_at > now {
                self.slowed += u64::from(!entry.held);
                entry.held = true;
                self.add_at(key, wanted.cause, allowed_at, now);
                continue;
            }
            // Only a pass ends a turn: a key that the breaker delays does not use up that of its group.
            if self.held {
                self.last_through = Some(key.group().clone());
            } else {
                self.lanes[wanted.cause.lane() as usize].end_turn(key.group());
            }
            entry.spent_until = entry.spent_until.max(now) + BREAKER_REFILL;
            entry.held = false;
            entry.running = true;
            if let Some(delay) = entry.delay.take() {
                self.delayed.remove(&(delay.at, delay.ticket));
            }
            self.running += 1;
            return NextKey::Job(Job {
                key,
                cause: wanted.cause,
                waited: now.saturating_duration_since(wanted.since),
            });
        }
        NextKey::Wait(self.due().into_iter().chain(self.sweep_at).min())
    }

    /// Ends the pass over `key`; if it was added meanwhile, it is queued again.
    pub(crate) fn done(&mut self, key: &K, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else {
            return;
        };
        entry.running = false;
        self.running -= 1;
        if entry.gone {
            self.entries.remove(key);
        } else if let Some(wanted) = &mut entry.wanted {
            self.last_ticket += 1;
            wanted.ticket = Some(self.last_ticket);
            self.lanes[wanted.cause.lane() as usize].insert(self.last_ticket, key.clone());
        } else {
            self.drop_if_idle(key, now);
        }
    }

    /// Sets whether the queue is held: no key is taken, and all are kept.
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Sets whether the queue is paused: no key is taken, even if let through.
    pub(crate) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Sets whether `key` is taken even while the queue is held.
    pub(crate) fn let_through(&mut self, key: &K, through: bool) {
        if through {
            self.through.insert(key.clone());
        } else {
            self.through.remove(key);
        }
    }

    /// Sets the backoff for keys whose pass fails from now on; delays that have begun stay.
    pub(crate) fn set_backoff(&mut self, backoff: BackoffPlan) {
        self.backoff = backoff;
    }

    /// Closes the queue: no key is taken any more, and none is kept.
    pub(crate) fn close(&mut self) {
        self.closed = true;
        self.lanes = Default::default();
        self.delayed = BTreeMap::new();
        self.sweep_at = None;
        self.entries.retain(|_, entry| {
            entry.wanted = None;
            entry.delay = None;
            entry.gone = true;
            entry.running
        });
    }

    /// Moves due keys into the lanes.
    fn promote(&mut self, now: Instant) {
        while let Some(first) = self.delayed.first_entry() {
            let (at, _) = *first.key();
            if at > now {
                return;
            }
            let key = first.remove();
            let delay = self
                .entries
                .get_mut(&key)
                .and_then(|entry| entry.delay.take());
            if let Some(delay) = delay {
                self.add(key, delay.cause, at);
            }
        }
    }

    fn pop(&mut self) -> Option<K> {
        if self.paused {
            return None;
        }
        if self.held {
            return self.pop_through();
        }
        let [changed, resync] = &mut self.lanes;
        let turn_of_resync = changed.is_empty() || self.changed_in_row >= RESYNC_SHARE;
        if turn_of_resync && let Some(key) = resync.pop_next() {
            self.changed_in_row = 0;
            return Some(key);
        }
        self.changed_in_row = if resync.is_empty() {
            0
        } else {
            self.changed_in_row + 1
        };
        changed.pop_next()
    }

    /// Takes a key among those that are taken while the queue is held: their groups take turns, in one order for both lanes.
    fn pop_through(&mut self) -> Option<K> {
        let waiting = self.through.iter().filter_map(|key| {
            let wanted = self.entries.get(key)?.wanted?;
            let had_turn = self.last_through.as_ref() >= Some(key.group());
            Some((
                (had_turn, key.group(), wanted.ticket?),
                wanted.cause.lane(),
                key,
            ))
        });
        let ((.., ticket), lane, key) = waiting.min_by_key(|(place, ..)| *place)?;
        self.lanes[lane as usize].remove(ticket, key)
    }

    fn drop_if_idle(&mut self, key: &K, now: Instant) {
        let Some(entry) = self.entries.get(key) else {
            return;
        };
        if !entry.is_idle() {
            return;
        }
        if entry.spent_until <= now {
            self.entries.remove(key);
        } else if self.sweep_at.is_none() {
            self.sweep_at = Some(now + SWEEP_EVERY);
        }
    }

    /// Drops entries whose bucket is full again, and frees their memory.
    fn sweep(&mut self, now: Instant) {
        if self.sweep_at.is_none_or(|at| at > now) {
            return;
        }
        self.entries
            .retain(|_, entry| !entry.is_idle() || entry.spent_until > now);
        self.entries.shrink_to_fit();
        let again = self.entries.values().any(KeyState::is_idle);
        self.sweep_at = again.then(|| now + SWEEP_EVERY);
    }

    /// Returns the number of keys in the lanes.
    pub(crate) fn depth(&self) -> usize {
        self.lanes.iter().map(WaitingKeys::len).sum()
    }

    /// Returns since when the longest waiting key waits. A key that moved up counts from the change.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        let firsts = self.lanes.iter().flat_map(WaitingKeys::firsts);
        firsts
            .filter_map(|key| Some(self.entries.get(key)?.wanted?.since))
            .min()
    }

    /// Returns when the next delay ends.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.delayed.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn delayed(&self) -> usize {
        self.delayed.len()
    }

    pub(crate) fn busy(&self) -> usize {
        self.running
    }

    /// Returns the keys that workers have taken.
    pub(crate) fn running(&self) -> Vec<K> {
        let running = self.entries.iter().filter(|(_, entry)| entry.running);
        running.map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn slowed(&self) -> u64 {
        self.slowed
    }

    pub(crate) fn is_slowed(&self, key: &K, now: Instant) -> bool {
        self.entries
            .get(key)
            .is_some_and(|entry| entry.allowed_at() > now)
    }

    pub(crate) fn failures(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// Returns how many keys use memory.
    pub(crate) fn known(&self) -> usize {
        self.entries.len()
    }
}

/// Returns the delay for a key that failed once more than `failures` times in a row.
fn wait(backoff: BackoffPlan, failures: u32) -> Duration {
    let BackoffPlan {
        first,
        longest,
        factor,
    } = backoff;
    let backoff = orkestra_ground::Backoff {
        first,
        longest,
        factor,
    };
    backoff.after(failures)
}
