//! Failed operators: their reports and restarts. Pure.

use std::{collections::BTreeMap, time::Duration};

use orkestra_ground::Backoff;
use orkestra_plan::{Plans, Revised};
use tokio::time::Instant;

use super::ledger::SlotKey;
use orkestra_operator::Role;

/// The delay before an operator that failed starts again.
const BACKOFF: Backoff = Backoff::doubling(Duration::from_secs(1), Duration::from_mins(5));
/// How long an operator must run after a failure to reset its backoff.
const STEADY: Duration = Duration::from_mins(10);

/// The failures of operators, by operator.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    operators: BTreeMap<SlotKey, Failure>,
    last_serial: u64,
}

/// The failures of one operator.
#[derive(Debug)]
struct Failure {
    /// How many times it failed without a recovery in between.
    times: u32,
    last: Instant,
    /// None once it runs again.
    down: Option<Down>,
}

/// An operator that does not run because it failed.
#[derive(Debug)]
struct Down {
    error: String,
    /// The plan that it ran, and the plan for its next start.
    plans: Plans,
    role: Role,
    /// Whether writes of the failed operator may still be in flight.
    draining: bool,
    /// Whether it should stop once they have ended.
    stopping: bool,
    serial: u64,
}

/// The restart of a failed operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Restart {
    /// The failure that it follows.
    pub(crate) serial: u64,
    /// The delay after the failure.
    pub(crate) after: Duration,
}

impl Failures {
    /// Records a failed operator; `draining` says that its writes may still be in flight.
    pub(crate) fn failed(
        &mut self,
        key: &SlotKey,
        error: String,
        (plans, role): (Plans, Role),
        draining: bool,
        now: Instant,
    ) -> Restart {
        self.last_serial += 1;
        let failure = self.operators.entry(key.clone()).or_insert(Failure {
            times: 0,
            last: now,
            down: None,
        });
        if now.saturating_duration_since(failure.last) >= STEADY {
            failure.times = 0;
        }
        let after = BACKOFF.after(failure.times);
        failure.times = failure.times.saturating_add(1);
        failure.last = now;
        failure.down = Some(Down {
            error,
            plans,
            role,
            draining,
            stopping: false,
            serial: self.last_serial,
        });
        Restart {
            serial: self.last_serial,
            after,
        }
    }

    /// Returns why an operator is down; none if it is not.
    pub(crate) fn error(&self, key: &SlotKey) -> Option<&str> {
        let down = self.operators.get(key)?.down.as_ref()?;
        Some(&down.error)
    }

    /// Sets another plan for an operator that is down, for its next start.
    pub(crate) fn reconfigure(&mut self, key: &SlotKey, wanted: Revised) {
        if let Some(down) = self.down(key) {
            down.plans.want(wanted);
        }
    }

    /// Stops an operator that does not run; true if it has stopped.
    pub(crate) fn stop(&mut self, key: &SlotKey) -> bool {
        if let Some(down) = self.down(key)
            && down.draining
        {
            down.stopping = true;
            return false;
        }
        self.operators.remove(key);
        true
    }

    /// Records that the writes of a failed operator have ended; true if it should stop, and now has.
    pub(crate) fn drained(&mut self, key: &SlotKey, serial: u64) -> bool {
        let Some(down) = self.down(key).filter(|down| down.serial == serial) else {
            return false;
        };
        down.draining = false;
        let stopped = down.stopping;
        if stopped {
            self.operators.remove(key);
        }
        stopped
    }

    /// Returns what to start after the backoff of that failure, if the operator is still down.
    pub(crate) fn due(&mut self, key: &SlotKey, serial: u64) -> Option<(Plans, Role)> {
        let down = &mut self.operators.get_mut(key)?.down;
        let down = down.take_if(|down| down.serial == serial && !down.draining)?;
        Some((down.plans, down.role))
    }

    fn down(&mut self, key: &SlotKey) -> Option<&mut Down> {
        self.operators.get_mut(key)?.down.as_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::operator;

    fn key() -> SlotKey {
        let plan = operator("Pond");
        (plan.katalog.clone(), plan.name.clone())
    }

    fn fail(failures: &mut Failures, draining: bool, now: Instant) -> Restart {
        let wanted = Revised {
            plan: operator("Pond"),
            revision: "r-1".into(),
        };
        let what = (Plans::new(wanted), Role::Reconciles);
        failures.failed(&key(), "no".to_owned(), what, draining, now)
    }

    #[test]
    fn the_backoff_doubles_up_to_five_minutes_and_starts_again_after_ten() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let waits: Vec<_> = (0..11)
            .map(|_| fail(&mut failures, false, now).after.as_secs())
            .collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        let later = now + STEADY;
        assert_eq!(fail(&mut failures, false, later).after.as_secs(), 1);
    }

    #[test]
    fn an_operator_starts_once_for_its_last_failure_and_not_before_its_writes_have_ended() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        let first = fail(&mut failures, true, now);
        assert_eq!(failures.error(&key()), Some("no"));
        assert!(failures.due(&key(), first.serial).is_none(), "not drained");
        assert!(!failures.drained(&key(), first.serial));
        assert!(failures.due(&key(), first.serial).is_some());
        assert_eq!(failures.error(&key()), None);
        assert!(failures.due(&key(), first.serial).is_none(), "is running");
        let second = fail(&mut failures, false, now);
        assert!(
            failures.due(&key(), first.serial).is_none(),
            "an old failure"
        );
        assert!(failures.due(&key(), second.serial).is_some());
    }

    #[test]
    fn an_operator_that_is_to_stop_stops_when_its_writes_have_ended_and_never_starts_again() {
        let (mut failures, now) = (Failures::default(), Instant::now());
        assert!(failures.stop(&key()), "it has no failure");
        let restart = fail(&mut failures, true, now);
        assert!(!failures.stop(&key()));
        assert!(failures.drained(&key(), restart.serial));
        assert!(failures.due(&key(), restart.serial).is_none());
        let restart = fail(&mut failures, false, now);
        assert!(failures.stop(&key()));
        assert!(failures.due(&key(), restart.serial).is_none());
    }
}
