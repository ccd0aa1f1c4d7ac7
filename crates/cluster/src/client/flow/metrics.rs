//! The metrics of flow control.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGauge};

/// The metrics of flow control.
#[derive(Clone, Debug)]
pub struct FlowMetrics {
    /// Requests in flight.
    pub in_flight: IntGauge,
    /// The limit of requests in flight.
    pub limit: IntGauge,
    /// 429 responses.
    pub throttled: IntCounter,
    /// Seconds that a request waited for its turn.
    pub wait: Histogram,
}

impl FlowMetrics {
    /// Sets requests in flight, and their limit.
    pub fn set(&self, in_flight: usize, limit: usize) {
        set(&self.in_flight, in_flight);
        set(&self.limit, limit);
    }

    /// Counts a 429.
    pub fn throttled(&self) {
        self.throttled.inc();
    }

    /// Observes how long a request waited for its turn.
    pub fn waited(&self, wait: Duration) {
        self.wait.observe(wait.as_secs_f64());
    }
}

fn set(gauge: &IntGauge, count: usize) {
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
}
