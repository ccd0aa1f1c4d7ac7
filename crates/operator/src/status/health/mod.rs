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
//! A custom resource whose own input fails ([`FailureScope`]) counts neither as failing nor in the total: its author cannot
//! degrade the operator. The same applies to failures of a namespace, such as those of its quota and of calls to services that
//! its custom resources name, until at least two namespaces have some, or where no other namespace has custom resources.

use std::collections::BTreeSet;

use orkestra_language::{api::OperatorStatus as Row, reasons::FailureScope};
use orkestra_plan::ObjectKey;

use super::{OperatorStatus, Phase};

/// The health of an operator as its passes show it.
#[derive(Debug, Default)]
pub(crate) struct OperatorHealth {
    /// Failed passes since the last success, for display.
    failed_in_row: u64,
    /// Failed passes since nothing failed, or since the operator recovered.
    failed_passes: u64,
    /// Custom resources that failed and have succeeded since the last failed pass.
    healed_in_row: u64,
    /// Custom resources whose last pass failed, and not because of their namespace or input alone.
    failing: BTreeSet<ObjectKey>,
    /// Custom resources whose last pass failed because of their namespace; sorted by namespace.
    failing_locally: BTreeSet<ObjectKey>,
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
pub(crate) enum HealthChange {
    /// The operator is degraded from now on.
    Degraded,
    /// The operator has recovered.
    Recovered,
}

/// The measure for passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    /// `queue.failureThreshold`.
    pub(crate) threshold: u64,
    /// Number of custom resources.
    pub(crate) instances: usize,
    /// Number of namespaces that have custom resources.
    pub(crate) namespaces: usize,
    /// The time.
    pub(crate) now: jiff::Timestamp,
}

const SCOPES: [FailureScope; 3] = [
    FailureScope::CustomResource,
    FailureScope::Namespace,
    FailureScope::Operator,
];

impl OperatorHealth {
    /// Records a successful pass over `key`.
    pub(crate) fn passed(&mut self, key: &ObjectKey, measure: Measure) -> Option<HealthChange> {
        self.failed_in_row = 0;
        let before = self.remove(key);
        if before.is_some_and(|scope| self.counts(scope, measure)) {
            self.healed_in_row += 1;
        }
        self.turn(measure, "")
    }

    /// Records a failed pass over `key`, which still exists. A failure that is not retried with backoff counts once: another
    /// pass over the same custom resource, for another reason, does not count again.
    pub(crate) fn failed(
        &mut self,
        key: &ObjectKey,
        (scope, error): (FailureScope, &str),
        is_retried: bool,
        measure: Measure,
    ) -> Option<HealthChange> {
        let is_new = self.remove(key) != Some(scope);
        self.failing_of(scope).insert(key.clone());
        if !self.counts(scope, measure) {
            return self.turn(measure, "");
        }
        if !is_new && !is_retried {
            return None;
        }
        self.healed_in_row = 0;
        self.failed_in_row += 1;
        self.failed_passes += 1;
        self.turn(measure, &format!("{key}: {error}"))
    }

    /// Records that the custom resource is gone.
    pub(crate) fn gone(&mut self, key: &ObjectKey, measure: Measure) -> Option<HealthChange> {
        self.remove(key)?;
        self.turn(measure, "")
    }

    /// Returns the custom resources with failures of that scope.
    fn failing_of(&mut self, scope: FailureScope) -> &mut BTreeSet<ObjectKey> {
        match scope {
            FailureScope::CustomResource => &mut self.failing_alone,
            FailureScope::Namespace => &mut self.failing_locally,
            FailureScope::Operator => &mut self.failing,
        }
    }

    /// Removes the failure of a custom resource; returns its scope.
    fn remove(&mut self, key: &ObjectKey) -> Option<FailureScope> {
        SCOPES
            .into_iter()
            .find(|scope| self.failing_of(*scope).remove(key))
    }

    /// True if failures of that scope affect the operator's health.
    fn counts(&self, scope: FailureScope, measure: Measure) -> bool {
        match scope {
            FailureScope::CustomResource => false,
            FailureScope::Namespace => {
                let [first, last] = [self.failing_locally.first(), self.failing_locally.last()]
                    .map(|key| key.map(|key| &key.namespace));
                measure.namespaces < 2 || first != last
            }
            FailureScope::Operator => true,
        }
    }

    /// Returns the failed passes since the last success, without those that do not affect the operator's health.
    pub(crate) fn failed_in_row(&self) -> u64 {
        self.failed_in_row
    }

    /// Returns since when and why it is degraded; none if it is not.
    pub(crate) fn degraded(&self) -> Option<&Degraded> {
        self.degraded.as_ref()
    }

    /// Re-evaluates the health; `last` is the last failure.
    fn turn(&mut self, measure: Measure, last: &str) -> Option<HealthChange> {
        let Measure {
            threshold,
            instances,
            now,
            ..
        } = measure;
        let (mut failing, mut excused) = (self.failing.len(), self.failing_alone.len());
        if self.counts(FailureScope::Namespace, measure) {
            failing += self.failing_locally.len();
        } else {
            excused += self.failing_locally.len();
        }
        if failing == 0 {
            (self.failed_in_row, self.failed_passes) = (0, 0);
        }
        let able = instances.saturating_sub(excused);
        let enough = usize::try_from(threshold).map_or(able, |threshold| threshold.min(able));
        let many = failing > 0 && failing >= enough && failing * 2 >= able;
        if self.degraded.is_none() {
            // Only a failed pass degrades: the removal of a custom resource does not.
            if last.is_empty() || !many || self.failed_passes < threshold {
                return None;
            }
            let message = format!(
                "{failing} of {} custom resources fail; last failure: {last}",
                able.max(failing)
            );
            self.degraded = Some(Degraded {
                since: now,
                message,
            });
            self.healed_in_row = 0;
            return Some(HealthChange::Degraded);
        }
        if many && self.healed_in_row < threshold {
            return None;
        }
        self.degraded = None;
        // Resources that still fail must reach the threshold again.
        self.failed_passes = 0;
        Some(HealthChange::Recovered)
    }
}

/// The state of an operator, as the pages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorState {
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

impl OperatorState {
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
            _ if status.all_problems().next().is_some()
                || status.degraded.is_some()
                || status.rollout.is_failed() =>
            {
                Self::Degraded
            }
            Phase::Starting | Phase::Running if status.has_succeeded() => Self::Healthy,
            Phase::Starting | Phase::Running => Self::Started,
        }
    }

    /// Returns the state of an operator from its row in its Katalog's status, as the leading process wrote it.
    pub fn reported(row: &Row) -> Self {
        match row.state.as_str() {
            "Running" if row.reason == "Yields" => Self::Standby,
            "Running" if !row.reason.is_empty() => Self::Degraded,
            // The earlier revision still runs; a new one that waits is a problem unless it is only in progress.
            "Updating" if row.reason != "Progressing" => Self::Degraded,
            "Running" if row.ready == 0 && row.instances > 0 => Self::Started,
            "Running" | "Updating" => Self::Healthy,
            "Deleting" | "Degraded" => Self::Degraded,
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
mod tests;
