//! The series of one operator.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_language::reasons::Reason;
use orkestra_plan::OperatorPlan;

use super::{
    Metrics, NOT_READY, Of, YES_OR_NO,
    series::{OperatorSeries, float},
};

/// The outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOutcome {
    /// Converged, or waiting.
    Success,
    /// Failed, or panicked.
    Error,
}

/// The trigger of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A change.
    Changed,
    /// A time that a pass had requested.
    Timer,
    /// A failure of the last pass.
    Retry,
    /// The periodic resync.
    Resync,
}

/// A write that the API server accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A child was applied.
    Apply,
    /// A child was created once.
    Create,
    /// A child was deleted.
    Delete,
    /// Finalizer, inventory or labels of the custom resource.
    ApplyMetadata,
    /// Status of the custom resource.
    PatchStatus,
    /// Fields of the custom resource's spec, normalized.
    Normalize,
}

/// The series of one operator. They are removed when the last value with the same labels is dropped.
#[derive(Debug)]
pub struct OperatorMetrics(Arc<OperatorSeries>);

impl OperatorMetrics {
    /// The series of the plan's operator, all at 0.
    pub fn new(metrics: &Metrics, plan: &OperatorPlan) -> Self {
        Self(metrics.0.operators.of([
            plan.katalog.to_string(),
            plan.name.clone(),
            plan.resource.group.to_string(),
            plan.resource.version.to_string(),
            plan.resource.kind.to_string(),
        ]))
    }

    /// Counts a worker as active until the guard is dropped, including by a panic.
    pub fn enter_pass(&self) -> ActiveWorker {
        self.0.add(Of::WorkersActive, 1.0);
        ActiveWorker(self.0.clone())
    }

    /// Counts a completed pass, with its trigger and whether it wrote anything.
    pub fn pass_ended(
        &self,
        outcome: PassOutcome,
        (trigger, wrote): (Trigger, bool),
        took: Duration,
    ) {
        self.0.count(Of::Reconcile, outcome as usize);
        let wrote = usize::from(!wrote);
        self.0
            .count(Of::Passes, trigger as usize * YES_OR_NO.len() + wrote);
        self.0.observe(Of::ReconcileDuration, took.as_secs_f64());
    }

    /// Counts a panic; the pass is counted by [`OperatorMetrics::pass_ended`].
    pub fn panicked(&self) {
        self.0.count(Of::Panics, 0);
    }

    /// Counts a write.
    pub fn wrote(&self, verb: Verb) {
        self.0.count(Of::Writes, verb as usize);
    }

    /// Counts a drift correction.
    pub fn drift_repaired(&self) {
        self.0.count(Of::DriftRepairs, 0);
    }

    /// Counts an apply that conflicted with another manager's field.
    pub fn conflicted(&self) {
        self.0.count(Of::Conflicts, 0);
    }

    /// Sets the number of known custom resources.
    pub fn set_resources(&self, count: usize) {
        self.set(Of::Resources, count);
    }

    /// Sets the number of custom resources that are ready, and of those that are not by reason.
    pub fn set_readiness(&self, ready: usize, not_ready: &BTreeMap<Reason, usize>) {
        self.set(Of::ResourcesReady, ready);
        for (at, reason) in Reason::ALL.iter().enumerate().take(NOT_READY.len()) {
            let count = not_ready.get(reason).copied().unwrap_or_default();
            self.0
                .set_at(Of::ResourcesNotReady, at, float(count as u64));
        }
    }

    /// Sets the number of custom resources that the revision in force broke.
    pub fn set_broken(&self, count: usize) {
        self.set(Of::ResourcesFailing, count);
    }

    /// Sets the number of records of custom resources and children, and their bytes.
    pub fn set_cache(&self, records: usize, bytes: usize) {
        self.set(Of::CacheRecords, records);
        self.set(Of::CacheBytes, bytes);
    }

    /// Sets the number of keys that are due, the wait of the oldest one, and the number of keys scheduled for later.
    pub fn set_queue(&self, depth: usize, oldest: Option<Duration>, delayed: usize) {
        self.set(Of::QueueDepth, depth);
        let oldest = oldest.unwrap_or_default();
        self.0.set(Of::QueueOldest, oldest.as_secs_f64());
        self.set(Of::QueueDelayed, delayed);
    }

    /// Sets the depth that counts as a full queue; 0 is none.
    pub fn set_queue_max_depth(&self, depth: u32) {
        self.0.set(Of::QueueMaxDepth, depth.into());
    }

    /// Counts that an autoscaler's `do` takes effect, or no longer does.
    pub fn scaled(&self, active: bool) {
        self.0.set(Of::Autoscaled, active.into());
        let turn = if active { Of::Overrides } else { Of::Restores };
        self.0.count(turn, 0);
    }

    /// Observes how long a key waited for its worker.
    pub fn waited(&self, wait: Duration) {
        self.0.observe(Of::QueueWait, wait.as_secs_f64());
    }

    /// Sets whether the operator is degraded.
    pub fn set_degraded(&self, degraded: bool) {
        self.0.set(Of::Degraded, degraded.into());
    }

    /// Sets the number of running workers.
    pub fn set_workers(&self, count: usize) {
        self.set(Of::Workers, count);
    }

    fn set(&self, metric: Of, count: usize) {
        self.0.set(metric, float(count as u64));
    }
}

/// A worker in a pass; see [`OperatorMetrics::enter_pass`].
#[derive(Debug)]
pub struct ActiveWorker(Arc<OperatorSeries>);

impl Drop for ActiveWorker {
    fn drop(&mut self) {
        self.0.add(Of::WorkersActive, -1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(metrics: &Metrics) -> String {
        metrics.parts().collect::<Result<_, _>>().unwrap()
    }

    fn labels(crd: &str) -> [String; 5] {
        ["pond/reeds", crd, "water.example", "v1", "Pond"].map(str::to_owned)
    }

    #[test]
    fn the_series_of_an_operator_go_when_its_last_holder_does() {
        let metrics = Metrics::new().unwrap();
        let first = OperatorMetrics(metrics.0.operators.of(labels("pond")));
        let successor = OperatorMetrics(metrics.0.operators.of(labels("pond")));
        let neighbour = OperatorMetrics(metrics.0.operators.of(labels("lake")));
        drop(first);
        let resync = (Trigger::Resync, false);
        successor.pass_ended(PassOutcome::Success, resync, Duration::from_millis(3));
        let said = text(&metrics);
        assert!(said.contains(r#"crd="pond""#), "{said}");
        drop(successor);
        let said = text(&metrics);
        assert!(!said.contains(r#"crd="pond""#), "{said}");
        assert!(said.contains(r#"crd="lake""#), "{said}");
        drop(neighbour);
        let said = text(&metrics);
        assert!(!said.contains("orkestra_reconcile_total"), "{said}");
    }

    #[test]
    fn every_count_lands_under_its_own_label() {
        let metrics = Metrics::new().unwrap();
        let operator = OperatorMetrics(metrics.0.operators.of(labels("pond")));
        operator.pass_ended(
            PassOutcome::Error,
            (Trigger::Changed, true),
            Duration::from_millis(3),
        );
        operator.wrote(Verb::PatchStatus);
        operator.wrote(Verb::PatchStatus);
        operator.wrote(Verb::Create);
        let active = operator.enter_pass();
        operator.set_resources(7);
        let said = text(&metrics);
        let base = r#"crd="pond",group="water.example",katalog="pond/reeds",kind="Pond""#;
        for line in [
            format!("orkestra_reconcile_total{{{base},result=\"error\",version=\"v1\"}} 1"),
            format!("orkestra_reconcile_total{{{base},result=\"success\",version=\"v1\"}} 0"),
            format!("orkestra_writes_total{{{base},verb=\"patch_status\",version=\"v1\"}} 2"),
            format!("orkestra_writes_total{{{base},verb=\"create\",version=\"v1\"}} 1"),
            format!("orkestra_workers_active{{{base},version=\"v1\"}} 1"),
            format!("orkestra_resource_count{{{base},version=\"v1\"}} 7"),
            format!(
                "orkestra_build_info{{version=\"{}\"}} 1",
                orkestra_ground::VERSION
            ),
        ] {
            assert!(said.contains(&line), "{line} is missing in\n{said}");
        }
        drop(active);
        let rests = format!("orkestra_workers_active{{{base},version=\"v1\"}} 0");
        assert!(text(&metrics).contains(&rests));
    }
}
