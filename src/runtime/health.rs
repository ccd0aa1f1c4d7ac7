//! Decides whether an operator is degraded by failed passes, and names its state for pages and for the templates of other
//! operators.
//!
//! ```text
//!            at least `failureThreshold` failed passes, of at least `failureThreshold` custom resources (or of all,
//!            if there are fewer), which are at least half of all
//!  well ───────────────────────────────────────────────────────────────────────────────────────────► degraded
//!    ▲                                                                                                   │
//!    └───────────────────────────────────────────────────────────────────────────────────────────────────┘
//!            fewer custom resources fail than that, or
//!            `failureThreshold` of those that failed succeed, one after the other
//! ```
//!
//! A custom resource whose own input fails ([`Reason::is_own_input`]) counts neither as failing nor in the total: its author
//! cannot degrade the operator.
//!
//! [`Reason::is_own_input`]: orkestra_core::reasons::Reason::is_own_input

use std::collections::BTreeSet;

use orkestra_core::{api::OperatorStatus as Row, plan::ObjectKey};

use super::{OperatorStatus, Phase};

/// The health of an operator as its passes show it.
#[derive(Debug, Default)]
pub(super) struct Health {
    /// Failed passes since the last success, for display.
    failed_in_row: u64,
    /// Failed passes since nothing failed, or since the operator recovered.
    failed_passes: u64,
    /// Custom resources that failed and have succeeded since the last failed pass.
    healed_in_row: u64,
    /// Custom resources whose last pass failed.
    failing: BTreeSet<ObjectKey>,
    /// Custom resources whose last pass failed because of their own input.
    failing_alone: BTreeSet<ObjectKey>,
    degraded: Option<Degraded>,
}

/// The degraded state: too many passes of the operator fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Degraded {
    /// Since when.
    pub since: jiff::Timestamp,
    /// The cause, human-readable; it stays the same until the operator recovers.
    pub message: String,
}

/// A change of health caused by a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// The operator is degraded from now on.
    Degraded,
    /// The operator has recovered.
    Recovered,
}

/// The measure for passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    /// `queue.failureThreshold`.
    pub(super) threshold: u64,
    /// Number of custom resources.
    pub(super) instances: usize,
    /// The time.
    pub(super) now: jiff::Timestamp,
}

impl Health {
    /// Records a successful pass over `key`.
    pub(super) fn passed(&mut self, key: &ObjectKey, measure: Measure) -> Option<Turn> {
        self.failed_in_row = 0;
        self.failing_alone.remove(key);
        if self.failing.remove(key) {
            self.healed_in_row += 1;
        }
        self.turn(measure, "")
    }

    /// Records a pass over `key` that failed because of its own input alone.
    pub(super) fn failed_alone(&mut self, key: &ObjectKey, measure: Measure) -> Option<Turn> {
        self.failing.remove(key);
        self.failing_alone.insert(key.clone());
        self.turn(measure, "")
    }

    /// Records a failed pass over `key`, which still exists. A failure that is not retried with backoff counts once: another
    /// pass over the same custom resource, for another reason, does not count again.
    pub(super) fn failed(
        &mut self,
        key: &ObjectKey,
        error: &str,
        is_retried: bool,
        measure: Measure,
    ) -> Option<Turn> {
        self.failing_alone.remove(key);
        let is_new = self.failing.insert(key.clone());
        if !is_new && !is_retried {
            return None;
        }
        self.healed_in_row = 0;
        self.failed_in_row += 1;
        self.failed_passes += 1;
        self.turn(measure, &format!("{key}: {error}"))
    }

    /// Records that the custom resource is gone.
    pub(super) fn gone(&mut self, key: &ObjectKey, measure: Measure) -> Option<Turn> {
        let failed_alone = self.failing_alone.remove(key);
        if !self.failing.remove(key) && !failed_alone {
            return None;
        }
        self.turn(measure, "")
    }

    /// Returns the failed passes since the last success, without those caused by a custom resource's own input.
    pub(super) fn failed_in_row(&self) -> u64 {
        self.failed_in_row
    }

    /// Returns since when and why it is degraded; none if it is not.
    pub(super) fn degraded(&self) -> Option<&Degraded> {
        self.degraded.as_ref()
    }

    /// Re-evaluates the health; `last` is the last failure.
    fn turn(&mut self, measure: Measure, last: &str) -> Option<Turn> {
        let Measure {
            threshold,
            instances,
            now,
        } = measure;
        let failing = self.failing.len();
        if failing == 0 {
            (self.failed_in_row, self.failed_passes) = (0, 0);
        }
        let able = instances.saturating_sub(self.failing_alone.len());
        let enough = usize::try_from(threshold).map_or(able, |threshold| threshold.min(able));
        let many = failing > 0 && failing >= enough && failing * 2 >= able;
        if self.degraded.is_none() {
            // Only a failed pass degrades: the removal of a custom resource does not.
            if last.is_empty() || !many || self.failed_passes < threshold {
                return None;
            }
            let message = format!(
                "{failing} of {} custom resources fail; the last, {last}",
                able.max(failing)
            );
            self.degraded = Some(Degraded {
                since: now,
                message,
            });
            self.healed_in_row = 0;
            return Some(Turn::Degraded);
        }
        if many && self.healed_in_row < threshold {
            return None;
        }
        self.degraded = None;
        // Resources that still fail must reach the threshold again.
        self.failed_passes = 0;
        Some(Turn::Recovered)
    }
}

/// The state of an operator, as the pages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its workers do not run yet, or another Katalog has the claim on its kind.
    Pending,
    /// It yields its kind to the entry of another version, or another process leads.
    Standby,
    /// Its workers run; no pass has succeeded yet.
    Started,
    /// Passes succeed.
    Healthy,
    /// Too many passes fail, or something it needs is missing or being deleted.
    Degraded,
}

impl State {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Standby,
        Self::Started,
        Self::Healthy,
        Self::Degraded,
    ];

    /// Returns the state of an operator with this status.
    pub fn of(status: &OperatorStatus) -> Self {
        match status.phase {
            Phase::Waiting | Phase::Starting if status.started_at.is_none() => Self::Pending,
            Phase::Standby => Self::Standby,
            Phase::Waiting | Phase::Deleting => Self::Degraded,
            _ if status.yields_to.is_some() => Self::Standby,
            _ if status.all_problems().next().is_some() || status.degraded.is_some() => {
                Self::Degraded
            }
            Phase::Starting | Phase::Running if status.has_succeeded() => Self::Healthy,
            Phase::Starting | Phase::Running => Self::Started,
        }
    }

    /// Returns the state of an operator from its row in its Katalog's status, as the leading process wrote it.
    pub fn told(row: &Row) -> Self {
        match row.state.as_str() {
            "Running" if row.reason == "Yields" => Self::Standby,
            "Running" if !row.reason.is_empty() => Self::Degraded,
            // The earlier revision still runs; a new one that waits is a problem unless it is only in progress.
            "Updating" if row.reason != "Progressing" => Self::Degraded,
            "Running" if row.ready == 0 && row.instances > 0 => Self::Started,
            "Running" | "Updating" => Self::Healthy,
            "Deleting" => Self::Degraded,
            _ => Self::Pending,
        }
    }

    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Standby => "standby",
            Self::Started => "started",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
        }
    }

    /// True if no action is needed.
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

    /// Runs passes over the resources with these numbers, failed if negative; returns the change of each.
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
    fn few_failing_resources_among_many_never_degrade_an_operator() {
        let mut health = Health::default();
        // However often they are retried, if nothing else happens.
        assert_eq!(passes(&mut health, 9, &[-1; 40]), [None; 40]);
        assert_eq!(passes(&mut health, 9, &[-2, -3, -4, -1]), [None; 4]);
        assert_eq!(health.failed_in_row(), 44);
        // Five of nine are at least half, and at least three.
        assert_eq!(passes(&mut health, 9, &[-5]), [DEGRADED]);
        let message = "5 of 9 custom resources fail; the last, east/5: no room";
        assert_eq!(health.degraded().unwrap().message, message);
    }

    #[test]
    fn half_of_all_is_not_enough_where_that_is_less_than_the_threshold() {
        let mut health = Health::default();
        assert_eq!(passes(&mut health, 3, &[-1, -2, -1, -2, -1]), [None; 5]);
        assert_eq!(passes(&mut health, 3, &[-3]), [DEGRADED]);
        // With fewer resources than the threshold all must fail, as often as the threshold.
        let mut health = Health::default();
        assert_eq!(passes(&mut health, 2, &[-1, -1, -1, -1]), [None; 4]);
        assert_eq!(passes(&mut health, 2, &[-2]), [DEGRADED]);
        let mut health = Health::default();
        assert_eq!(
            passes(&mut health, 1, &[-1, -1, -1]),
            [None, None, DEGRADED]
        );
    }

    #[test]
    fn many_that_fail_degrade_it_though_others_succeed_in_between() {
        let mut health = Health::default();
        let turns = passes(&mut health, 6, &[-1, 4, -2, 5, 6, -3, 4]);
        assert_eq!(turns[5], DEGRADED);
        assert!(turns.iter().filter(|turn| turn.is_some()).count() == 1);
        // Half of all still fail, even if the others succeed.
        assert_eq!(passes(&mut health, 6, &[4, 5, 6, 4, 5]), [None; 5]);
        assert_eq!(passes(&mut health, 6, &[1]), [RECOVERED]);
        // The same three are few among many more.
        let mut health = Health::default();
        assert_eq!(passes(&mut health, 7, &[-1, 4, -2, 5, -3]), [None; 5]);
    }

    #[test]
    fn it_recovers_as_soon_as_those_that_failed_succeed() {
        let mut health = Health::default();
        let all: Vec<i32> = (1..=20).map(|one| -one).collect();
        assert!(passes(&mut health, 20, &all).contains(&DEGRADED));
        // Most have not been retried yet; three in a row that recover show that the cause is gone.
        assert_eq!(passes(&mut health, 20, &[1, 2, -3]), [None; 3]);
        assert_eq!(passes(&mut health, 20, &[4, 5, 6]), [None, None, RECOVERED]);
        // Resources that still fail must reach the threshold again.
        assert_eq!(
            passes(&mut health, 20, &[-7, -8, -9]),
            [None, None, DEGRADED]
        );
        let mut health = Health::default();
        passes(&mut health, 1, &[-1, -1, -1]);
        assert_eq!(passes(&mut health, 1, &[1]), [RECOVERED]);
    }

    #[test]
    fn a_resource_that_goes_fails_no_more_and_degrades_nothing() {
        let mut health = Health::default();
        passes(&mut health, 2, &[-1, -2, -1]);
        assert_eq!(health.gone(&key(7), of(2)), None);
        assert_eq!(health.gone(&key(1), of(1)), None);
        assert_eq!(health.gone(&key(2), of(0)), RECOVERED);
        assert_eq!(health.failed_in_row(), 0);

        // Three of seven fail; after one that worked is gone, half of all fail.
        let mut health = Health::default();
        passes(&mut health, 7, &[-1, -2, -3, -1]);
        health.failed_alone(&key(7), of(7));
        assert_eq!(health.gone(&key(7), of(6)), None);
        assert!(health.degraded().is_none());
    }

    #[test]
    fn resources_whose_own_input_fails_degrade_nothing_and_hide_nothing() {
        let mut health = Health::default();
        for number in 0..50 {
            assert_eq!(health.failed_alone(&key(number), of(53)), None);
        }
        assert_eq!(health.failed_in_row(), 0);
        // All three that could succeed fail.
        assert_eq!(
            passes(&mut health, 53, &[-51, -52, -53]),
            [None, None, DEGRADED]
        );
        let message = "3 of 3 custom resources fail; the last, east/53: no room";
        assert_eq!(health.degraded().unwrap().message, message);
        // One of them fails because of its own input instead: the two others still fail.
        assert_eq!(health.failed_alone(&key(51), of(53)), None);
        assert_eq!(passes(&mut health, 53, &[52]), [RECOVERED]);
    }

    #[test]
    fn a_failure_that_is_not_retried_counts_once_for_each_resource() {
        let mut health = Health::default();
        let mut fail = |number| health.failed(&key(number), "no right", false, of(3));
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
        // Failures below the threshold do not change the state.
        let failing = OperatorStatus {
            consecutive_failures: 2,
            failures: 2,
            ..running
        };
        assert_eq!(State::of(&failing), State::Healthy);
    }
}
