//! The rules of the election: pure, every call is told what time it is.
//!
//! ```text
//!  nothing known ── see ──► another holds it ── not changed for its duration, or released ──► Acquire
//!                               ▲                                                               │ won
//!                               └── somebody else wrote, it is gone, or not renewed in time ── held: Renew
//! ```

use std::{sync::Arc, time::Duration};

use orkestra_ground::Moment;

/// How long everything takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others leave a lease alone that they do not see change: `leaseDurationSeconds`, whole seconds.
    pub lease: Duration,
    /// How long after the start of its last renewal a leader leads. What is left until others may take over is the margin for
    /// writes that were started.
    pub renew_deadline: Duration,
    /// How often a leader renews.
    pub renew: Duration,
    /// How long a failed attempt rests, less some jitter.
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

/// What of a Lease matters. Its times do not: that it was written is what counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// Its resourceVersion: another one with every write.
    pub version: String,
    /// `holderIdentity`; none where nobody holds it.
    pub holder: Option<Arc<str>>,
    /// `leaseDurationSeconds`; none where it says nothing sensible.
    pub duration: Option<Duration>,
    /// `leaseTransitions`.
    pub transitions: i32,
}

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write oneself into the Lease, which nobody holds any more.
    Acquire,
    /// Write a new time into the Lease, which is held.
    Renew,
    /// Nothing until then, or until something is heard; none is no time at all.
    Wait(Option<Moment>),
}

#[derive(Clone, Debug)]
enum Seen {
    Absent,
    Lease { record: Record, since: Moment },
}

/// One candidate's view.
#[derive(Clone, Debug)]
pub struct Election {
    identity: Arc<str>,
    timing: Timing,
    /// The newest state known; none before the first.
    seen: Option<Seen>,
    /// When the last write that made or kept it ours was started; none while it is not ours.
    held_since: Option<Moment>,
    /// No attempt before.
    rests_until: Option<Moment>,
    /// Attempts in a row that were refused since somebody else was faster.
    conflicts: u32,
}

impl Election {
    /// A candidate that knows nothing yet; `identity` is nobody else's, not even of a former life of the same process.
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

    /// Takes in a state of the Lease that is newer than any before; none is that there is no Lease.
    pub fn see(&mut self, record: Option<Record>, now: Moment) {
        let ours = |record: &Record| record.holder.as_ref() == Some(&self.identity);
        if !record.as_ref().is_some_and(ours) {
            self.held_since = None;
        }
        self.seen = Some(match (record, self.seen.take()) {
            (None, _) => Seen::Absent,
            (Some(record), Some(Seen::Lease { record: old, since })) if record == old => {
                Seen::Lease { record, since }
            }
            (Some(record), _) => Seen::Lease { record, since: now },
        });
    }

    /// An attempt that was begun at `started` succeeded: the Lease is `record`, and ours.
    pub fn won(&mut self, record: Record, started: Moment) {
        self.held_since = Some(started);
        self.seen = Some(Seen::Lease {
            record,
            since: started,
        });
        (self.rests_until, self.conflicts) = (None, 0);
    }

    /// An attempt failed, or had no answer, which may have been either: the next is made after `rest`.
    pub fn failed(&mut self, now: Moment, rest: Duration) {
        self.rests_until = Some(now + rest);
    }

    /// An attempt was refused since somebody else had written; [`Election::see`] tells what. Once that is no reason to wait,
    /// again and again it is.
    pub fn conflicted(&mut self, now: Moment, rest: Duration) {
        self.conflicts += 1;
        if self.conflicts > 1 {
            self.failed(now, rest);
        }
    }

    /// What to do now. A lease that was not renewed in time is given up here.
    pub fn next(&mut self, now: Moment) -> Step {
        let rested = self.rests_until.filter(|at| *at > now);
        if let Some(until) = self.leads_until(now) {
            let due = self.held_since.unwrap_or(now) + self.timing.renew;
            let due = rested.map_or(due, |rested| rested.max(due));
            return if due <= now {
                Step::Renew
            } else {
                Step::Wait(Some(due.min(until)))
            };
        }
        self.held_since = None;
        let free_at = match &self.seen {
            None => return Step::Wait(None),
            Some(Seen::Absent) => now,
            Some(Seen::Lease { record, since }) => match &record.holder {
                Some(other) if *other != self.identity => *since + self.duration(record),
                // Ours from an attempt without an answer, or given up: it is taken anew, so that it is known since when.
                _ => now,
            },
        };
        let at = rested.map_or(free_at, |rested| rested.max(free_at));
        if at <= now {
            Step::Acquire
        } else {
            Step::Wait(Some(at))
        }
    }

    /// Until when this candidate leads if it renews no more; none when it does not.
    pub fn leads_until(&self, now: Moment) -> Option<Moment> {
        let until = self.held_since? + self.timing.renew_deadline;
        (until > now).then_some(until)
    }

    /// Who leads as far as is known; nobody where the lease has run out or was released.
    pub fn leader(&self, now: Moment) -> Option<Arc<str>> {
        if self.leads_until(now).is_some() {
            return Some(Arc::clone(&self.identity));
        }
        let Some(Seen::Lease { record, since }) = &self.seen else {
            return None;
        };
        let holder = record.holder.as_ref()?;
        let valid = *holder != self.identity && *since + self.duration(record) > now;
        valid.then(|| Arc::clone(holder))
    }

    /// Whether anything is known of the Lease.
    pub fn has_heard(&self) -> bool {
        self.seen.is_some()
    }

    fn duration(&self, record: &Record) -> Duration {
        record.duration.unwrap_or(self.timing.lease)
    }
}

#[cfg(test)]
mod tests;
