//! The series of a process's requests.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGauge};

use super::Metrics;

/// What the flow of requests counts into.
#[derive(Debug)]
pub struct FlowMetrics {
    in_flight: IntGauge,
    limit: IntGauge,
    throttled: IntCounter,
    wait: Histogram,
}

impl FlowMetrics {
    /// The series of the process, all of them at 0.
    pub fn new(metrics: &Metrics) -> Self {
        let families = &metrics.0.families;
        Self {
            in_flight: (families.requests_in_flight).with_label_values::<&str>(&[]),
            limit: families.requests_limit.with_label_values::<&str>(&[]),
            throttled: (families.requests_throttled).with_label_values::<&str>(&[]),
            wait: families.requests_wait.with_label_values::<&str>(&[]),
        }
    }

    /// Requests in flight, and how many may be.
    pub fn set(&self, in_flight: usize, limit: usize) {
        set(&self.in_flight, in_flight);
        set(&self.limit, limit);
    }

    /// Counts a 429.
    pub fn throttled(&self) {
        self.throttled.inc();
    }

    /// How long a request waited for its turn.
    pub fn waited(&self, wait: Duration) {
        self.wait.observe(wait.as_secs_f64());
    }
}

fn set(gauge: &IntGauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}
