//! One operator's series.

use std::{fmt, sync::PoisonError, time::Duration};

use orkestra_core::plan::OperatorPlan;
use prometheus::{Gauge, Histogram, IntCounter, IntGauge};

use super::{Metrics, RESULTS, TRIGGERS, VERBS, YES_OR_NO};

/// How a pass ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Converged, or waiting.
    Success,
    /// Failed, or panicked.
    Error,
}

/// What led to a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Something changed.
    Changed,
    /// A time came that a pass had asked for.
    Timer,
    /// The last pass failed.
    Retry,
    /// The safety net.
    Resync,
}

/// A write that the API server accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// A child applied.
    Apply,
    /// A child made once.
    Create,
    /// A child deleted.
    Delete,
    /// Finalizer, inventory or labels of the custom resource.
    ApplyMetadata,
    /// Status of the custom resource.
    PatchStatus,
    /// Fields of the custom resource's spec, brought to one form.
    Normalize,
}

/// One operator's series. They leave the registry when the last value with the same labels is dropped.
pub struct OperatorMetrics {
    metrics: Metrics,
    labels: [String; 5],
    results: [IntCounter; 2],
    /// By trigger, then those that wrote and those that did not.
    passes: [[IntCounter; 2]; TRIGGERS.len()],
    duration: Histogram,
    resources: IntGauge,
    records: IntGauge,
    bytes: IntGauge,
    queue_depth: IntGauge,
    queue_max_depth: IntGauge,
    queue_oldest: Gauge,
    queue_delayed: IntGauge,
    queue_wait: Histogram,
    workers: IntGauge,
    active: IntGauge,
    degraded: IntGauge,
    autoscaled: IntGauge,
    overrides: IntCounter,
    restores: IntCounter,
    panics: IntCounter,
    writes: [IntCounter; VERBS.len()],
    drift_repairs: IntCounter,
    conflicts: IntCounter,
}

impl fmt::Debug for OperatorMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OperatorMetrics")
            .field(&self.labels)
            .finish()
    }
}

impl OperatorMetrics {
    /// The series of the plan's operator, all of them at 0.
    pub fn new(metrics: &Metrics, plan: &OperatorPlan) -> Self {
        Self::with_labels(
            metrics,
            [
                plan.katalog.to_string(),
                plan.name.clone(),
                plan.resource.group.to_string(),
                plan.resource.version.to_string(),
                plan.resource.kind.to_string(),
            ],
        )
    }

    fn with_labels(metrics: &Metrics, labels: [String; 5]) -> Self {
        let families = &metrics.0.families;
        // Held to the end: a predecessor with these labels must not remove the series while they are being taken.
        let mut users = metrics
            .0
            .users
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *users.entry(labels.clone()).or_default() += 1;
        let and = |own: &'static str| {
            labels
                .iter()
                .map(String::as_str)
                .chain([own])
                .collect::<Vec<_>>()
        };
        let [success, error] = [RESULTS[0], RESULTS[1]]
            .map(|result| families.reconcile.with_label_values(&and(result)));
        let passes = |index: usize| {
            [YES_OR_NO[0], YES_OR_NO[1]].map(|wrote| {
                let own = [TRIGGERS[index], wrote];
                let all: Vec<&str> = labels.iter().map(String::as_str).chain(own).collect();
                families.passes.with_label_values(&all)
            })
        };
        let write = |index: usize| families.writes.with_label_values(&and(VERBS[index]));
        let this = Self {
            metrics: metrics.clone(),
            results: [success, error],
            passes: std::array::from_fn(passes),
            duration: families.reconcile_duration.with_label_values(&labels),
            resources: families.resource_count.with_label_values(&labels),
            records: families.cache_records.with_label_values(&labels),
            bytes: families.cache_bytes.with_label_values(&labels),
            queue_depth: families.queue_depth.with_label_values(&labels),
            queue_max_depth: families.queue_max_depth.with_label_values(&labels),
            queue_oldest: families.queue_oldest.with_label_values(&labels),
            queue_delayed: families.queue_delayed.with_label_values(&labels),
            queue_wait: families.queue_wait.with_label_values(&labels),
            workers: families.workers.with_label_values(&labels),
            active: families.workers_active.with_label_values(&labels),
            degraded: families.degraded.with_label_values(&labels),
            autoscaled: families.autoscaled.with_label_values(&labels),
            overrides: families.overrides.with_label_values(&labels),
            restores: families.restores.with_label_values(&labels),
            panics: families.panics.with_label_values(&labels),
            writes: std::array::from_fn(write),
            drift_repairs: families.drift_repairs.with_label_values(&labels),
            conflicts: families.conflicts.with_label_values(&labels),
            labels,
        };
        drop(users);
        this
    }

    /// Counts a worker as active until the guard is dropped, a panic included.
    pub fn enter_pass(&self) -> ActiveWorker {
        self.active.inc();
        ActiveWorker(self.active.clone())
    }

    /// Counts a pass that ended, `trigger` led to and `wrote` something or not.
    pub fn pass_ended(&self, outcome: Outcome, (trigger, wrote): (Trigger, bool), took: Duration) {
        self.results[outcome as usize].inc();
        self.passes[trigger as usize][usize::from(!wrote)].inc();
        self.duration.observe(took.as_secs_f64());
    }

    /// Counts a panic; the pass is counted by [`OperatorMetrics::pass_ended`].
    pub fn panicked(&self) {
        self.panics.inc();
    }

    /// Counts a write.
    pub fn wrote(&self, verb: Verb) {
        self.writes[verb as usize].inc();
    }

    /// Counts a child that was put back.
    pub fn drift_repaired(&self) {
        self.drift_repairs.inc();
    }

    /// Counts an apply that met another manager's field.
    pub fn conflicted(&self) {
        self.conflicts.inc();
    }

    /// Custom resources known.
    pub fn set_resources(&self, count: usize) {
        set(&self.resources, count);
    }

    /// Records kept of custom resources and children, and their bytes.
    pub fn set_cache(&self, records: usize, bytes: usize) {
        set(&self.records, records);
        set(&self.bytes, bytes);
    }

    /// Keys that are due and wait for a worker, and how long the first of them has; keys that wait for a time.
    pub fn set_queue(&self, depth: usize, oldest: Option<Duration>, delayed: usize) {
        set(&self.queue_depth, depth);
        let oldest = oldest.unwrap_or_default();
        self.queue_oldest.set(oldest.as_secs_f64());
        set(&self.queue_delayed, delayed);
    }

    /// The depth that counts as a full queue; 0 is none.
    pub fn set_queue_max_depth(&self, depth: u32) {
        self.queue_max_depth.set(depth.into());
    }

    /// Counts that an autoscaler's `do` counts from now on, or that it no longer does.
    pub fn scaled(&self, active: bool) {
        self.autoscaled.set(active.into());
        if active {
            self.overrides.inc();
        } else {
            self.restores.inc();
        }
    }

    /// How long a key waited for its worker.
    pub fn waited(&self, wait: Duration) {
        self.queue_wait.observe(wait.as_secs_f64());
    }

    /// Whether the operator is degraded.
    pub fn set_degraded(&self, degraded: bool) {
        self.degraded.set(degraded.into());
    }

    /// Workers that run.
    pub fn set_workers(&self, count: usize) {
        set(&self.workers, count);
    }
}

impl Drop for OperatorMetrics {
    fn drop(&mut self) {
        let mut users = self
            .metrics
            .0
            .users
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let last = match users.get_mut(&self.labels) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            _ => users.remove(&self.labels).is_some(),
        };
        if last {
            self.metrics.0.families.remove(&self.labels);
        }
    }
}

/// A worker in a pass; see [`OperatorMetrics::enter_pass`].
#[derive(Debug)]
pub struct ActiveWorker(IntGauge);

impl Drop for ActiveWorker {
    fn drop(&mut self) {
        self.0.dec();
    }
}

pub(super) fn set(gauge: &IntGauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(crd: &str) -> [String; 5] {
        ["pond/reeds", crd, "water.example", "v1", "Pond"].map(str::to_owned)
    }

    #[test]
    fn the_series_of_an_operator_go_when_its_last_holder_does() {
        let metrics = Metrics::new().unwrap();
        let first = OperatorMetrics::with_labels(&metrics, labels("pond"));
        let successor = OperatorMetrics::with_labels(&metrics, labels("pond"));
        let neighbour = OperatorMetrics::with_labels(&metrics, labels("lake"));
        drop(first);
        let resync = (Trigger::Resync, false);
        successor.pass_ended(Outcome::Success, resync, Duration::from_millis(3));
        let text = metrics.encode().unwrap();
        assert!(text.contains(r#"crd="pond""#), "{text}");
        drop(successor);
        let text = metrics.encode().unwrap();
        assert!(!text.contains(r#"crd="pond""#), "{text}");
        assert!(text.contains(r#"crd="lake""#), "{text}");
        drop(neighbour);
        assert!(metrics.0.users.lock().unwrap().is_empty());
    }

    #[test]
    fn every_count_lands_under_its_own_label() {
        let metrics = Metrics::new().unwrap();
        let operator = OperatorMetrics::with_labels(&metrics, labels("pond"));
        operator.pass_ended(
            Outcome::Error,
            (Trigger::Changed, true),
            Duration::from_millis(3),
        );
        operator.wrote(Verb::PatchStatus);
        operator.wrote(Verb::PatchStatus);
        operator.wrote(Verb::Create);
        let active = operator.enter_pass();
        operator.set_resources(7);
        let text = metrics.encode().unwrap();
        let base = r#"crd="pond",group="water.example",katalog="pond/reeds",kind="Pond""#;
        for line in [
            format!("orkestra_reconcile_total{{{base},result=\"error\",version=\"v1\"}} 1"),
            format!("orkestra_reconcile_total{{{base},result=\"success\",version=\"v1\"}} 0"),
            format!("orkestra_writes_total{{{base},verb=\"patch_status\",version=\"v1\"}} 2"),
            format!("orkestra_writes_total{{{base},verb=\"create\",version=\"v1\"}} 1"),
            format!("orkestra_workers_active{{{base},version=\"v1\"}} 1"),
            format!("orkestra_resource_count{{{base},version=\"v1\"}} 7"),
            format!("orkestra_build_info{{version=\"{}\"}} 1", crate::VERSION),
        ] {
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
        drop(active);
        assert!(metrics.encode().unwrap().contains(&format!(
            "orkestra_workers_active{{{base},version=\"v1\"}} 0"
        )));
    }
}
