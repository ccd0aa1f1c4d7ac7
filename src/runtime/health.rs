//! How an operator fares, in one word: for pages, and for the templates of other operators.

use orkestra_core::{api::OperatorStatus as Row, plan::OperatorPlan};

use super::{OperatorStatus, Phase};

/// An operator's state, as the pages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Its workers do not run yet, or its kind is claimed by another Katalog.
    Pending,
    /// It leaves its kind to the entry of another version, or its work to the process that leads.
    Standby,
    /// Its workers run; no pass has succeeded yet.
    Started,
    /// Passes succeed.
    Healthy,
    /// Passes fail, or something it needs is missing or going.
    Degraded,
}

impl State {
    /// Each of them.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Standby,
        Self::Started,
        Self::Healthy,
        Self::Degraded,
    ];

    /// The state of the operator that follows `plan` and says `status` of itself.
    pub fn of(plan: &OperatorPlan, status: &OperatorStatus) -> Self {
        match status.phase {
            Phase::Waiting | Phase::Starting if status.started_at.is_none() => Self::Pending,
            Phase::Standby => Self::Standby,
            Phase::Waiting | Phase::Deleting => Self::Degraded,
            _ if status.yields_to.is_some() => Self::Standby,
            _ if !status.problems.is_empty()
                || status.consecutive_failures >= plan.queue.failure_threshold =>
            {
                Self::Degraded
            }
            Phase::Starting | Phase::Running if status.passes > status.failures => Self::Healthy,
            Phase::Starting | Phase::Running => Self::Started,
        }
    }

    /// The state of an operator of which the process that leads says `row` in its Katalog's status.
    pub fn told(row: &Row) -> Self {
        match row.state.as_str() {
            "Running" if row.reason == "Yields" => Self::Standby,
            "Running" if !row.reason.is_empty() => Self::Degraded,
            "Running" if row.ready == 0 && row.instances > 0 => Self::Started,
            "Running" => Self::Healthy,
            "Deleting" => Self::Degraded,
            _ => Self::Pending,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Standby => "standby",
            Self::Started => "started",
            Self::Healthy => "healthy",
            Self::Degraded => "degraded",
        }
    }

    /// Whether it is as it should be.
    pub fn is_well(self) -> bool {
        matches!(self, Self::Standby | Self::Started | Self::Healthy)
    }
}
