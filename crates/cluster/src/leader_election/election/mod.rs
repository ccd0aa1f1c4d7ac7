//! The rules of leader election: pure functions that receive the time as an argument.
//!
//! ```text
//!  nothing known ── see ──► another holds it ── unchanged for its duration, or released ──► Acquire
//!                               ▲                                                               │ won
//!                               └── written by another, deleted, or not renewed in time ── held: Renew
//! ```

use std::{sync::Arc, time::Duration};

use orkestra_ground::Moment;

/// The durations of leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long other candidates wait for a lease that does not change: `leaseDurationSeconds`, whole seconds.
    pub lease: Duration,
    /// How long a leader leads after the start of its last renewal. The rest, until others may take over, is the margin for
    /// writes that were started.
    pub renew_deadline: Duration,
    /// The interval between renewals.
    pub renew: Duration,
    /// The pause after a failed attempt, less some jitter.
    pub retry: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(9),
            renew_deadline: Duration::from_secs(6),
            renew: Duration::from_secs(2),
            retry: Duration::from_millis(1500),
        }
    }
}

/// The relevant fields of a Lease. Its times are not relevant: only the fact that it was written counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseRecord {
    /// Its resourceVersion, which changes with every write.
    pub version: String,
    /// `holderIdentity`; `None` if there is no holder.
    pub holder: Option<Arc<str>>,
    /// `leaseDurationSeconds`; `None` if it is missing or invalid.
    pub duration: Option<Duration>,
    /// `leaseTransitions`.
    pub transitions: i32,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElectionStep {
    /// Write this candidate into the Lease, which has no valid holder.
    Acquire,
    /// Write a new time into the Lease, which this candidate holds.
    Renew,
    /// Nothing until that time, or until there is news; `None` is no time limit.
    Wait(Option<Moment>),
}

#[derive(Clone, Debug)]
enum SeenLease {
    Absent,
    Lease { record: LeaseRecord, since: Moment },
}

/// One candidate's view.
#[derive(Clone, Debug)]
pub struct Election {
    identity: Arc<str>,
    timing: Timing,
    /// The newest known state; `None` before the first.
    seen: Option<SeenLease>,
    /// The start of the last write that acquired or renewed the Lease; `None` while another holds it.
    held_since: Option<Moment>,
    /// The time before which no attempt is made.
    rests_until: Option<Moment>,
    /// Consecutive attempts that were refused because another candidate wrote first.
    conflicts: u32,
}

impl Election {
    /// A candidate without knowledge; `identity` is unique, also among earlier runs of the same process.
    pub fn new(identity: Arc<str>, timing: Timing) -> Self {
        Self {
            identity,
            timing,
            seen: None,
            held_since: None,
            rests_until: None,
            conflicts: 0,
        }
    }

    /// Records a state of the Lease that is newer than any before; `None` means that there is no Lease.
    pub fn see(&mut self, record: Option<LeaseRecord>, now: Moment) {
        let ours = |record: &LeaseRecord| record.holder.as_ref() == Some(&self.identity);
        if !record.as_ref().is_some_and(ours) {
            self.held_since = None;
        }
        self.seen = Some(match (record, self.seen.take()) {
            (None, _) => SeenLease::Absent,
            (Some(record), Some(SeenLease::Lease { record: old, since })) if record == old => {
                SeenLease::Lease { record, since }
            }
            (Some(record), _) => SeenLease::Lease { record, since: now },
        });
    }

    /// Records that an attempt started at `started` succeeded: the Lease is `record`, and held by this candidate.
    pub fn won(&mut self, record: LeaseRecord, started: Moment) {
        self.held_since = Some(started);
        self.seen = Some(SeenLease::Lease {
            record,
            since: started,
        });
        (self.rests_until, self.conflicts) = (None, 0);
    }

    /// Records that an attempt failed or was not answered, so that it may have succeeded: the next one is made after `rest`.
    pub fn failed(&mut self, now: Moment, rest: Duration) {
        self.rests_until = Some(now + rest);
    }

    /// Records that an attempt was refused because another candidate had written; [`Election::see`] receives the new state. The
    /// first conflict is retried at once, further ones after `rest`.
    pub fn conflicted(&mut self, now: Moment, rest: Duration) {
        self.conflicts += 1;
        if self.conflicts > 1 {
            self.failed(now, rest);
        }
    }

    /// Returns the next step. A lease that was not renewed in time is given up here.
    pub fn next(&mut self, now: Moment) -> ElectionStep {
        let rested = self.rests_until.filter(|at| *at > now);
        if let Some(until) = self.leads_until(now) {
            let due = self.held_since.unwrap_or(now) + self.timing.renew;
            let due = rested.map_or(due, |rested| rested.max(due));
            return if due <= now {
                ElectionStep::Renew
            } else {
                ElectionStep::Wait(Some(due.min(until)))
            };
        }
        self.held_since = None;
        let free_at = match &self.seen {
            None => return ElectionStep::Wait(None),
            Some(SeenLease::Absent) => now,
            Some(SeenLease::Lease { record, since }) => match &record.holder {
                Some(other) if *other != self.identity => *since + self.duration(record),
                // Held from an attempt without an answer, or given up: it is acquired again, so that the start of the hold is
                // known.
                _ => now,
            },
        };
        let at = rested.map_or(free_at, |rested| rested.max(free_at));
        if at <= now {
            ElectionStep::Acquire
        } else {
            ElectionStep::Wait(Some(at))
        }
    }

    /// The time until which this candidate leads without another renewal; `None` if it does not lead.
    pub fn leads_until(&self, now: Moment) -> Option<Moment> {
        let until = self.held_since? + self.timing.renew_deadline;
        (until > now).then_some(until)
    }

    /// The leader as far as is known; `None` if the lease has expired or was released.
    pub fn leader(&self, now: Moment) -> Option<Arc<str>> {
        if self.leads_until(now).is_some() {
            return Some(Arc::clone(&self.identity));
        }
        let Some(SeenLease::Lease { record, since }) = &self.seen else {
            return None;
        };
        let holder = record.holder.as_ref()?;
        let valid = *holder != self.identity && *since + self.duration(record) > now;
        valid.then(|| Arc::clone(holder))
    }

    /// True once any state of the Lease is known.
    pub fn has_heard(&self) -> bool {
        self.seen.is_some()
    }

    fn duration(&self, record: &LeaseRecord) -> Duration {
        record.duration.unwrap_or(self.timing.lease)
    }
}

#[cfg(test)]
mod tests;
