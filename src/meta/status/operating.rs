//! The known state of one operator, and its row in the Katalog's status: pure.

use orkestra_core::{
    api::{
        OperatorStatus as Row,
        conditions::{self, DEGRADED, SUSPENDED},
    },
    plan::Revised,
    reasons::KatalogReason,
};

use crate::runtime::{OperatorStatus, Phase, health::Degraded};

/// The state of an operator that runs an earlier revision than the wanted one.
const UPDATING: &str = "Updating";
/// Problems of a running operator that make its Katalog not ready; others appear only in its row.
const GRAVE: [KatalogReason; 3] = [
    KatalogReason::Forbidden,
    KatalogReason::CrdMissing,
    KatalogReason::KindNotServed,
];

/// The known state of one operator.
#[derive(Debug)]
pub(crate) struct Operating<'a> {
    /// Its plan in the newest accepted revision.
    pub(crate) wanted: &'a Revised,
    /// Its own status.
    pub(crate) status: OperatorStatus,
    /// Whether another Katalog has its kind.
    pub(crate) conflict: bool,
}

impl Operating<'_> {
    pub(super) fn is_ready(&self) -> bool {
        let grave = self
            .status
            .problems
            .iter()
            .any(|problem| GRAVE.contains(&problem.reason));
        let runs = self.status.phase == Phase::Running && self.status.runs(self.wanted);
        runs && !self.conflict && !self.status.suspended && !grave
    }

    pub(super) fn name(&self) -> &str {
        &self.wanted.plan.name
    }

    /// Returns the plan it runs while the wanted one cannot run yet.
    pub(super) fn runs_instead(&self) -> Option<&Revised> {
        self.status.runs_instead_of(self.wanted)
    }

    /// Returns since when and why too many of its passes fail; none if it is not running at all.
    pub(crate) fn degraded(&self) -> Option<&Degraded> {
        let runs = self.status.phase == Phase::Running;
        self.status.degraded.as_ref().filter(|_| runs)
    }

    /// Returns why it is not ready, as a reason of the Katalog.
    pub(super) fn reason(&self) -> KatalogReason {
        let has = |reason| {
            self.status
                .all_problems()
                .any(|problem| problem.reason == reason)
        };
        match self.status.phase {
            _ if has(KatalogReason::OperatorFailed) => KatalogReason::OperatorFailed,
            _ if has(KatalogReason::Forbidden) => KatalogReason::Forbidden,
            _ if self.conflict => KatalogReason::Conflict,
            _ if self.status.suspended => KatalogReason::Suspended,
            Phase::Starting | Phase::Standby => KatalogReason::Progressing,
            // All caches are filled except those of the new plan.
            Phase::Running if self.status.pending.is_empty() && !self.status.runs(self.wanted) => {
                KatalogReason::Progressing
            }
            _ => KatalogReason::Waiting,
        }
    }

    /// Returns the reason and message of its row. While an earlier plan runs they describe the wanted one, and say so.
    fn says(&self) -> (&'static str, String) {
        let status = &self.status;
        if self.is_suspended() {
            return (KatalogReason::Suspended.as_str(), String::new());
        }
        if let Some(running) = self.runs_instead() {
            let (wanted, running) = (&self.wanted.revision, &running.revision);
            return match status.pending.first() {
                Some(problem) => (
                    problem.reason.as_str(),
                    format!(
                        "revision {wanted} waits: {}; until then revision {running} runs",
                        problem.message
                    ),
                ),
                None => (
                    KatalogReason::Progressing.as_str(),
                    format!("revision {wanted} is about to replace revision {running}"),
                ),
            };
        }
        if let Some(problem) = status.problems.first() {
            return (problem.reason.as_str(), problem.message.clone());
        }
        if let Some(to) = &status.yields_to {
            let message = format!("entry {to} reconciles this kind, in another version");
            return (KatalogReason::Yields.as_str(), message);
        }
        match self.degraded() {
            Some(degraded) => (KatalogReason::PassesFail.as_str(), degraded.message.clone()),
            None => ("", status.remark.clone().unwrap_or_default()),
        }
    }

    /// True if nothing but its suspension keeps it from its work.
    fn is_suspended(&self) -> bool {
        let status = &self.status;
        status.suspended && !self.conflict && status.problems.is_empty()
    }

    fn state(&self) -> &'static str {
        match self.status.phase {
            _ if self.is_suspended() => SUSPENDED,
            Phase::Running if self.runs_instead().is_some() => UPDATING,
            _ if self.degraded().is_some() => DEGRADED,
            phase => state(phase),
        }
    }

    pub(super) fn row(&self) -> Row {
        let Self { wanted, status, .. } = self;
        let plans = status.plans.as_ref();
        let running = plans.and_then(|plans| plans.running());
        let plan = running.map_or(&wanted.plan, |running| &running.plan);
        let (reason, message) = self.says();
        Row {
            name: plan.name.clone(),
            group: plan.resource.group.to_string(),
            version: plan.resource.version.to_string(),
            kind: plan.resource.kind.to_string(),
            state: self.state().to_owned(),
            revision: running.map(|running| running.revision.to_string()),
            wanted_revision: (running != Some(wanted)).then(|| wanted.revision.to_string()),
            workers: u32::try_from(status.steady_workers).unwrap_or(u32::MAX),
            instances: count(status.instances),
            ready: count(status.ready),
            reason: reason.to_owned(),
            message: conditions::cut_message(&message),
        }
    }

    /// Formats `website: Forbidden: cannot list …`.
    pub(super) fn line(&self) -> String {
        let row = self.row();
        let parts = [
            row.name,
            if row.reason.is_empty() {
                row.state
            } else {
                row.reason
            },
            row.message,
        ];
        parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(": ")
    }
}

pub(super) fn state(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "Waiting",
        // A follower writes no status, except at the moment in which it takes over.
        Phase::Starting | Phase::Standby => "Starting",
        Phase::Running => "Running",
        Phase::Deleting => "Deleting",
    }
}

pub(super) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
