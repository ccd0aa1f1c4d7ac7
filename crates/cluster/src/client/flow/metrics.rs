//! The series that the flow of requests counts into.

use std::time::Duration;

use prometheus::{Histogram, IntCounter, IntGauge};

/// What the flow of requests counts into.
#[derive(Clone, Debug)]
pub struct FlowMetrics {
    /// Requests in flight.
    pub in_flight: IntGauge,
    /// How many may be in flight.
    pub limit: IntGauge,
    /// Answers 429.
    pub throttled: IntCounter,
    /// Seconds that a request waited for its turn.
    pub wait: Histogram,
}

impl FlowMetrics {
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
