//! External calls.

use prometheus::IntCounterVec;

use super::Metrics;

/// The result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// The status counts as success.
    Success,
    /// Any other status.
    Status,
    /// The call timed out.
    Timeout,
    /// The call got no place in time.
    Busy,
    /// The call is not permitted, or cannot be made.
    Refused,
    /// The connection failed.
    Unreachable,
    /// The response is not valid, or too large.
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

/// The counters of external calls.
#[derive(Clone, Debug)]
pub struct CallMetrics(IntCounterVec);

impl CallMetrics {
    /// The series of the process.
    pub fn new(metrics: &Metrics) -> Self {
        Self(metrics.0.families.external_calls.clone())
    }

    /// Counts an attempt of a call to a host that this entry of `--external-allow` permits. The entries are set by the
    /// administrator, so the number of series is limited, whatever custom resources call.
    pub fn count(&self, entry: Option<&str>, result: CallResult) {
        let labels = [entry.unwrap_or(OTHER), result.label()];
        self.0.with_label_values(&labels).inc();
    }
}
