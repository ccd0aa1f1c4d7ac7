//! The autoscaler of an operator, and the metrics that it reads.

use std::time::Duration;

use super::Gate;
use orkestra_object::value::Key;

/// An operator's autoscaler.
#[derive(Debug)]
pub struct AutoscalePlan {
    /// The interval of evaluating the gate.
    pub interval: Duration,
    /// How long the gate must be closed before the declared capacity returns.
    pub cooldown: Duration,
    /// The gate; it reads only metrics.
    pub gate: Gate,
    /// The operators whose metrics the gate reads: the name below `.cross`, and the entry.
    pub cross: Box<[(Key, Box<str>)]>,
    /// The capacity while the gate is open.
    pub capacity: CapacityPlan,
    /// Hash of all of it.
    pub hash: String,
}

/// Values that replace the declared capacity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapacityPlan {
    /// Concurrent passes, at least 1.
    pub workers: Option<usize>,
    /// The depth that counts as a full queue; 0 disables it.
    pub queue_depth: Option<u32>,
    /// Resync period; zero is off.
    pub resync: Option<Duration>,
}

/// A metric that conditions compare, by its name below `metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// Keys waiting for a worker.
    QueueDepth,
    /// Running workers.
    Workers,
    /// Whether the `do` of an autoscaler applies.
    AutoscaleActive,
    /// The share of workers that are running a pass.
    WorkersBusyPercent,
    /// The share of workers that are idle.
    WorkersIdlePercent,
    /// The 95th percentile of the duration of recent passes, in milliseconds.
    ReconcileDurationP95Ms,
    /// The share of recent passes that failed.
    ErrorRatePercent,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 7] = [
        Self::QueueDepth,
        Self::Workers,
        Self::AutoscaleActive,
        Self::WorkersBusyPercent,
        Self::WorkersIdlePercent,
        Self::ReconcileDurationP95Ms,
        Self::ErrorRatePercent,
    ];

    /// Returns the name below `metrics`.
    pub fn name(self) -> &'static str {
        match self {
            Self::QueueDepth => "queueDepth",
            Self::Workers => "workers",
            Self::AutoscaleActive => "autoscaleActive",
            Self::WorkersBusyPercent => "workersBusyPercent",
            Self::WorkersIdlePercent => "workersIdlePercent",
            Self::ReconcileDurationP95Ms => "reconcileDurationP95Ms",
            Self::ErrorRatePercent => "errorRatePercent",
        }
    }

    /// Returns the metric with that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}
