//! Calls to the outside.

use prometheus::IntCounterVec;

use super::Metrics;

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// With the status that counts as success.
    Success,
    /// With another status.
    Status,
    /// It took too long.
    Timeout,
    /// It had no place in time.
    Busy,
    /// It may not or cannot be made.
    Refused,
    /// There was no connection.
    Unreachable,
    /// The answer is none, or too large.
    Broken,
}

impl CallResult {
    const fn label(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Status => "status",
            Self::Timeout => "timeout",
            Self::Busy => "busy",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Broken => "broken",
        }
    }
}

/// The label of hosts that no entry of `--external-allow` names.
const OTHER: &str = "other";

/// What calls to the outside count into.
#[derive(Clone, Debug)]
pub struct CallMetrics(IntCounterVec);

impl CallMetrics {
    /// The series of the process.
    pub fn new(metrics: &Metrics) -> Self {
        Self(metrics.0.families.external_calls.clone())
    }

    /// Counts a try of a call to a host that this entry of `--external-allow` permits. The entries are the operator's own, so
    /// that there are no more series than these, whatever custom resources call.
    pub fn count(&self, entry: Option<&str>, result: CallResult) {
        let labels = [entry.unwrap_or(OTHER), result.label()];
        self.0.with_label_values(&labels).inc();
    }
}
