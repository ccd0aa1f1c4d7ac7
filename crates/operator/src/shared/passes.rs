//! The results of an operator's passes: counters, health, durations.

use std::time::Duration;

use orkestra_engine::reconcile::verdict::{Executed, Verdict};
use orkestra_language::reasons::{FailureScope, Reason};
use orkestra_plan::ObjectKey;
use parking_lot::Mutex;

use super::meter::{Meter, RecentPasses};
use crate::status::health::{Degraded, HealthChange, Measure, OperatorHealth};

/// The failure of a pass.
pub(crate) struct Failed {
    pub(crate) message: String,
    /// The reason that the custom resource reports.
    pub(crate) reason: Reason,
    /// How far it reaches.
    pub(crate) scope: FailureScope,
}

impl Failed {
    /// Returns the failures of a pass with that verdict; none if nothing failed.
    pub(crate) fn of(executed: &Executed, verdict: Verdict) -> Option<Self> {
        let scopes = executed.failures.iter();
        let scope = scopes.map(|failure| failure.reason.scope()).max()?;
        Some(Self {
            message: verdict.message,
            reason: verdict.reason,
            scope,
        })
    }
}

/// Counters of an operator's passes.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassCounters {
    pub(crate) passes: u64,
    pub(crate) failures: u64,
    /// Failures that the custom resource's own input caused.
    pub(crate) own_failures: u64,
    pub(crate) last_error: Option<String>,
    pub(crate) last_pass: Option<jiff::Timestamp>,
}

/// The results of one operator's passes.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    counters: Mutex<PassCounters>,
    health: Mutex<OperatorHealth>,
    /// The recent passes.
    meter: Meter,
}

impl Passes {
    /// Records how long a pass took that just ended.
    pub(crate) fn ended(&self, took: Duration, failed: bool) {
        self.meter.ended(took, failed);
    }

    /// Counts a pass over a custom resource; `is_known` says whether it still exists, `is_retried` whether it is retried with
    /// backoff. Returns the change of the operator's health.
    pub(crate) fn count(
        &self,
        key: &ObjectKey,
        (is_known, is_retried): (bool, bool),
        failed: Option<Failed>,
        measure: Measure,
    ) -> Option<HealthChange> {
        let change = match &failed {
            None => self.health.lock().passed(key, measure),
            Some(_) if !is_known => None,
            Some(failed) => {
                let error = (failed.scope, &*failed.message);
                self.health.lock().failed(key, error, is_retried, measure)
            }
        };
        let mut counters = self.counters.lock();
        counters.passes += 1;
        counters.last_pass = Some(measure.now);
        if let Some(failed) = failed {
            counters.failures += 1;
            counters.own_failures += u64::from(failed.scope == FailureScope::CustomResource);
            counters.last_error = Some(failed.message);
        }
        change
    }

    /// Removes a deleted custom resource. Returns the change of the operator's health.
    pub(crate) fn forget(&self, key: &ObjectKey, measure: Measure) -> Option<HealthChange> {
        self.health.lock().gone(key, measure)
    }

    /// Starts over, since the CRD is gone; the counters stay.
    pub(crate) fn clear(&self) {
        *self.health.lock() = OperatorHealth::default();
    }

    /// Returns the counters.
    pub(crate) fn counters(&self) -> PassCounters {
        self.counters.lock().clone()
    }

    /// Returns how many passes failed since the last success, and why the operator is degraded.
    pub(crate) fn health(&self) -> (u64, Option<Degraded>) {
        let health = self.health.lock();
        (health.failed_in_row(), health.degraded().cloned())
    }

    /// Returns a summary of the passes of the last minute.
    pub(crate) fn recent(&self) -> RecentPasses {
        self.meter.recent()
    }
}
