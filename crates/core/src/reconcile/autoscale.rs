//! What an operator measures of itself.

use crate::value::{Key, Map, Node};

/// What an operator measures of itself, as templates read it below `.metrics`; percentages are whole numbers up to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Keys that wait for a worker.
    pub queue_depth: u64,
    /// Workers that take keys.
    pub workers: u64,
    /// Whether an autoscaler's `do` counts at the moment.
    pub autoscale_active: bool,
    /// The share of the workers that are in a pass.
    pub workers_busy_percent: u64,
    /// How long all but the slowest twentieth of the recent passes took at most, in milliseconds; 0 without any.
    pub reconcile_duration_p95_ms: u64,
    /// The share of the recent passes that failed; 0 without any.
    pub error_rate_percent: u64,
}

/// A figure that conditions compare, by its name below `metrics`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Metric {
    /// [`Figures::queue_depth`].
    QueueDepth,
    /// [`Figures::workers`].
    Workers,
    /// [`Figures::autoscale_active`].
    AutoscaleActive,
    /// [`Figures::workers_busy_percent`].
    WorkersBusyPercent,
    /// What of 100 is not [`Figures::workers_busy_percent`].
    WorkersIdlePercent,
    /// [`Figures::reconcile_duration_p95_ms`].
    ReconcileDurationP95Ms,
    /// [`Figures::error_rate_percent`].
    ErrorRatePercent,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::QueueDepth,
        Self::Workers,
        Self::AutoscaleActive,
        Self::WorkersBusyPercent,
        Self::WorkersIdlePercent,
        Self::ReconcileDurationP95Ms,
        Self::ErrorRatePercent,
    ];

    /// Its name below `metrics`.
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

    /// The metric of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }
}

impl Figures {
    /// The figure of that metric.
    pub fn get(&self, metric: Metric) -> Node {
        let number = |number: u64| Node::from(i64::try_from(number).unwrap_or(i64::MAX));
        match metric {
            Metric::QueueDepth => number(self.queue_depth),
            Metric::Workers => number(self.workers),
            Metric::AutoscaleActive => Node::from(self.autoscale_active),
            Metric::WorkersBusyPercent => number(self.workers_busy_percent),
            Metric::WorkersIdlePercent => number(100u64.saturating_sub(self.workers_busy_percent)),
            Metric::ReconcileDurationP95Ms => number(self.reconcile_duration_p95_ms),
            Metric::ErrorRatePercent => number(self.error_rate_percent),
        }
    }

    /// All of them, as `.metrics` is.
    pub fn to_node(&self) -> Node {
        let entries = Metric::ALL.map(|metric| (Key::from(metric.name()), self.get(metric)));
        Node::Map(entries.into_iter().collect::<Map>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_name_and_stands_under_it() {
        let figures = Figures {
            queue_depth: 41,
            workers: 6,
            autoscale_active: true,
            workers_busy_percent: 83,
            reconcile_duration_p95_ms: 219,
            error_rate_percent: 7,
        };
        for metric in Metric::ALL {
            assert_eq!(Metric::parse(metric.name()), Some(metric));
        }
        assert_eq!(Metric::parse("queuedepth"), None);
        let expected = serde_json::json!({
            "queueDepth": 41, "workers": 6, "autoscaleActive": true, "workersBusyPercent": 83,
            "workersIdlePercent": 17, "reconcileDurationP95Ms": 219, "errorRatePercent": 7,
        });
        assert_eq!(figures.to_node().to_json(), expected);
    }
}
