//! How an operator fares: whether its passes degrade it, and the whole in one word, for pages and for the templates of other
//! operators.
//!
//! ```text
//!            `failureThreshold` failed passes in a row, or
//!            so many custom resources fail, which are half of all
//!  well ──────────────────────────────────────────────────────────► degraded
//!    ▲                                                                  │
//!    └──────────────────────────────────────────────────────────────────┘
//!            no custom resource fails any more, or
//!            as many passes in a row succeed, and fewer than half of all fail
//! ```
//!
//! One success is not enough to recover, as long as others fail: what goes up and down is told of once.

use std::collections::BTreeSet;

use orkestra_core::{api::OperatorStatus as Row, plan::ObjectKey};

use super::{OperatorStatus, Phase};

/// What the passes of an operator say of it.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Failed passes since the last success.
    failed_in_row: u64,
    /// Successes since the last failed pass.
    passed_in_row: u64,
    /// Custom resources whose last pass failed.
    failing: BTreeSet<ObjectKey>,
    degraded: Option<Degraded>,
}

/// An operator too many of whose passes fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degraded {
    /// Since when.
    pub since: jiff::Timestamp,
    /// What it was that made it so, for people; it stays the same until it recovers.
    pub message: String,
}

/// What a pass changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The operator is degraded from now on.
    Degraded,
    /// It no longer is.
    Recovered,
}

/// What the passes are measured by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    /// `queue.failureThreshold`.
    pub(super) threshold: u64,
    /// Custom resources that there are.
    pub(super) instances: usize,
    /// The time.
    pub(super) now: jiff::Timestamp,
}

impl Health {
    /// A pass over `key` succeeded.
    pub(super) fn passed(&mut self, key: &ObjectKey, measure: Measure) -> Option<Turn> {
        self.failed_in_row = 0;
        self.passed_in_row += 1;
        self.failing.remove(key);
        self.turn(measure, String::new)
    }

    /// A pass over `key`, which is still there, failed. One that is not tried again by itself, or only now and then, counts
    /// once: that its custom resource is looked at anew for some other reason makes nothing worse.
    pub(super) fn failed(
        &mut self,
        key: &ObjectKey,
        error: &str,
        is_retried: bool,
        measure: Measure,
    ) -> Option<Turn> {
        let is_new = self.failing.insert(key.clone());
        if !is_new && !is_retried {
            return None;
        }
        self.passed_in_row = 0;
        self.failed_in_row += 1;
        let (in_row, failing) = (self.failed_in_row, self.failing.len());
        self.turn(measure, || {
            if in_row >= measure.threshold {
                format!("{in_row} passes in a row failed; the last, over {key}: {error}")
            } else {
                let all = measure.instances;
                format!("{failing} of {all} custom resources fail; the last, {key}: {error}")
            }
        })
    }

    /// The custom resource is gone: nobody is left who could succeed in its place.
    pub(super) fn gone(&mut self, key: &ObjectKey, measure: Measure) -> Option<Turn> {
        if !self.failing.remove(key) {
            return None;
        }
        if self.failing.is_empty() {
            self.failed_in_row = 0;
        }
        self.turn(measure, String::new)
    }

    /// Failed passes since the last success.
    pub(super) fn failed_in_row(&self) -> u64 {
        self.failed_in_row
    }

    /// Whether it is degraded, since when and why.
    pub(super) fn degraded(&self) -> Option<&Degraded> {
        self.degraded.as_ref()
    }

    fn turn(&mut self, measure: Measure, why: impl FnOnce() -> String) -> Option<Turn> {
        let Measure {
            threshold,
            instances,
            now,
        } = measure;
        let failing = self.failing.len();
        let many = failing as u64 >= threshold && failing * 2 >= instances;
        if self.degraded.is_none() {
            if self.failed_in_row < threshold && !(many && self.failed_in_row > 0) {
                return None;
            }
            let message = why();
            self.degraded = Some(Degraded {
                since: now,
                message,
            });
            return Some(Turn::Degraded);
        }
        let recovered = failing == 0 || (self.passed_in_row >= threshold && !many);
        recovered.then(|| {
            self.degraded = None;
            Turn::Recovered
        })
    }
}

/// An operator's state, as the pages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its workers do not run yet, or its kind is claimed by another Katalog.
    Pending,
    /// It leaves its kind to the entry of another version, or its work to the process that leads.
    Standby,
    /// Its workers run; no pass has succeeded yet.
    Started,
    /// Passes succeed.
    Healthy,
    /// Too many passes fail, or something it needs is missing or going.
    Degraded,
}

impl State {
    /// Each of them.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Standby,
        Self::Started,
        Self::Healthy,
        Self::Degraded,
    ];

    /// The state of the operator that says `status` of itself.
    pub fn of(status: &OperatorStatus) -> Self {
        match status.phase {
            Phase::Waiting | Phase::Starting if status.started_at.is_none() => Self::Pending,
            Phase::Standby => Self::Standby,
            Phase::Waiting | Phase::Deleting => Self::Degraded,
            _ if status.yields_to.is_some() => Self::Standby,
            _ if !status.problems.is_empty() || status.degraded.is_some() => Self::Degraded,
            Phase::Starting | Phase::Running if status.passes > status.failures => Self::Healthy,
            Phase::Starting | Phase::Running => Self::Started,
        }
    }

    /// The state of an operator of which the process that leads says `row` in its Katalog's status.
    pub fn told(row: &Row) -> Self {
        match row.state.as_str() {
            "Running" if row.reason == "Yields" => Self::Standby,
            "Running" if !row.reason.is_empty() => Self::Degraded,
            "Running" if row.ready == 0 && row.instances > 0 => Self::Started,
            "Running" => Self::Healthy,
            "Deleting" => Self::Degraded,
            _ => Self::Pending,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Standby => "standby",
            Self::Started => "started",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
        }
    }

    /// Whether it is as it should be.
    pub fn is_well(self) -> bool {
        matches!(self, Self::Standby | Self::Started | Self::Healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: usize) -> ObjectKey {
        ObjectKey {
            namespace: Some("east".into()),
            name: name.to_string().into(),
        }
    }

    fn of(instances: usize) -> Measure {
        Measure {
            threshold: 3,
            instances,
            now: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    /// Passes over the resources with these numbers, a failed one where it is negative; what each changed.
    fn passes(health: &mut Health, instances: usize, outcomes: &[i32]) -> Vec<Option<Turn>> {
        let mut pass = |outcome: &i32| {
            let key = key(outcome.unsigned_abs() as usize);
            if *outcome < 0 {
                health.failed(&key, "no room", true, of(instances))
            } else {
                health.passed(&key, of(instances))
            }
        };
        outcomes.iter().map(&mut pass).collect()
    }

    const DEGRADED: Option<Turn> = Some(Turn::Degraded);
    const RECOVERED: Option<Turn> = Some(Turn::Recovered);

    #[test]
    fn it_takes_as_many_failures_in_a_row_as_are_declared_and_is_told_once() {
        let mut health = Health::default();
        let turns = passes(&mut health, 9, &[-1, -1, 2, -1, -1, -1, -1, -2]);
        let mut expected = [None; 8];
        expected[5] = DEGRADED;
        assert_eq!(turns, expected);
        let message = "3 passes in a row failed; the last, over east/1: no room";
        assert_eq!(health.degraded().unwrap().message, message);
        assert_eq!(health.failed_in_row(), 5);
    }

    #[test]
    fn a_success_among_failures_does_not_recover_and_as_many_as_the_threshold_do() {
        let mut health = Health::default();
        passes(&mut health, 9, &[-1, -1, -1]);
        // Others succeed now and then, and the one goes on failing.
        let turns = passes(&mut health, 9, &[2, -1, 3, 4, -1, 5, 6]);
        assert_eq!(turns, [None; 7]);
        assert_eq!(passes(&mut health, 9, &[7]), [RECOVERED]);
        // The one failure more is no new outage.
        assert_eq!(passes(&mut health, 9, &[-1, 2]), [None, None]);
    }

    #[test]
    fn it_recovers_at_once_when_nothing_fails_any_more() {
        let mut health = Health::default();
        passes(&mut health, 1, &[-1, -1, -1]);
        assert_eq!(passes(&mut health, 1, &[1]), [RECOVERED]);

        passes(&mut health, 2, &[-1, -2, -1]);
        assert_eq!(health.gone(&key(7), of(2)), None);
        assert_eq!(health.gone(&key(1), of(1)), None);
        assert_eq!(health.gone(&key(2), of(0)), RECOVERED);
        assert_eq!(health.failed_in_row(), 0);
    }

    #[test]
    fn many_that_fail_degrade_it_though_others_succeed_in_between() {
        let mut health = Health::default();
        let turns = passes(&mut health, 6, &[-1, 4, -2, 5, 6, -3, 4]);
        assert_eq!(turns[5], DEGRADED);
        assert!(turns.iter().filter(|turn| turn.is_some()).count() == 1);
        let message = "3 of 6 custom resources fail; the last, east/3: no room";
        assert_eq!(health.degraded().unwrap().message, message);
        // Half of all still fail, whatever the others do.
        assert_eq!(passes(&mut health, 6, &[4, 5, 6, 4, 5]), [None; 5]);
        assert_eq!(passes(&mut health, 6, &[1]), [RECOVERED]);
        // Of many more the same three are few.
        let mut health = Health::default();
        assert_eq!(passes(&mut health, 7, &[-1, 4, -2, 5, -3]), [None; 5]);
    }

    #[test]
    fn what_only_another_input_mends_counts_once_for_each_resource() {
        let mut health = Health::default();
        let mut fail = |number| health.failed(&key(number), "no name", false, of(9));
        let turns = [1, 1, 1, 1, 2, 1, 2, 3].map(&mut fail);
        assert_eq!(turns[..7], [None; 7]);
        assert_eq!(turns[7], DEGRADED);
    }

    #[test]
    fn a_state_is_one_word() {
        let running = OperatorStatus {
            phase: Phase::Running,
            passes: 4,
            ..OperatorStatus::default()
        };
        assert_eq!(State::of(&running), State::Healthy);
        let degraded = OperatorStatus {
            degraded: Some(Degraded {
                since: jiff::Timestamp::UNIX_EPOCH,
                message: "3 passes in a row failed".to_owned(),
            }),
            ..running.clone()
        };
        assert_eq!(State::of(&degraded), State::Degraded);
        // Failures below the threshold are no state.
        let failing = OperatorStatus {
            consecutive_failures: 2,
            failures: 2,
            ..running
        };
        assert_eq!(State::of(&failing), State::Healthy);
    }
}
