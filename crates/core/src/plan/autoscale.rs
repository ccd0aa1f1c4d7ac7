//! The metrics of an operator that its autoscaler reads.

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
