//! What an operator reports about itself.
//!
//! ```text
//!  passes ──► health: degraded or not ──┐
//!  phase, problems, counters ───────────┴──► OperatorStatus ──► pages, templates, the Katalog's status
//! ```

pub mod health;
pub mod rollout;

use std::collections::BTreeMap;

use orkestra_language::reasons::{KatalogReason, Reason};
use orkestra_plan::{Plans, Revised};

use self::{health::Degraded, rollout::Rollout};

/// The role of an operator among the operators of other versions of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reconciles: exactly one of the versions of a kind does.
    Reconciles,
    /// It has an informer, a queue and metrics, and writes nothing: the entry of this name reconciles instead.
    Yields(String),
}

/// The progress of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It waits for something external: its CRD, a permission, a claim.
    #[default]
    Waiting,
    /// Its caches are filling.
    Starting,
    /// Its caches are filled, and its workers are stopped: another process leads.
    Standby,
    /// Its workers run.
    Running,
    /// Its CRD is being deleted: it runs deletions only.
    Deleting,
}

/// Something that prevents all or part of an operator's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorProblem {
    /// The reason, in one word.
    pub reason: KatalogReason,
    /// The problem, and its fix.
    pub message: String,
}

/// The status of an operator, published when it changes, at most a few times per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorStatus {
    /// The running plan and the wanted plan; none before the first report.
    pub plans: Option<Plans>,
    /// The progress of the running plan.
    pub phase: Phase,
    /// The problems of the running plan, most severe first; if none runs, what the operator waits for.
    pub problems: Vec<OperatorProblem>,
    /// What does not make it less healthy: which kinds of earlier revisions cannot be read. The author of a custom resource chooses
    /// which of these kinds its inventory names.
    pub remark: Option<String>,
    /// What the wanted plan waits for while an earlier one still runs; empty if only its caches are filling.
    pub pending: Vec<OperatorProblem>,
    /// Whether it runs no plan, and cannot before a permission is granted or a CRD is applied.
    pub is_blocked: bool,
    /// Current number of workers.
    pub workers: usize,
    /// Workers that stay when nothing is left to do.
    pub steady_workers: usize,
    /// Custom resources known.
    pub instances: usize,
    /// Custom resources whose last pass left them ready.
    pub ready: usize,
    /// Custom resources whose last pass did not leave them ready, by reason; those without a pass are in neither.
    pub not_ready: BTreeMap<Reason, usize>,
    /// Custom resources that `reconcileGate` holds back.
    pub gated: usize,
    /// How those stand that a revision has made ready.
    pub rollout: Rollout,
    /// Passes since the start.
    pub passes: u64,
    /// Failed passes.
    pub failures: u64,
    /// Failures that the custom resource's own input caused.
    pub own_failures: u64,
    /// Failed passes since the last success, without those that do not affect the operator's health.
    pub consecutive_failures: u64,
    /// Since when and why failed passes make it degraded; none if it is not degraded.
    pub degraded: Option<Degraded>,
    /// The last failure's message; kept after recovery.
    pub last_error: Option<String>,
    /// When the last pass ended.
    pub last_pass: Option<jiff::Timestamp>,
    /// When its workers started.
    pub started_at: Option<jiff::Timestamp>,
    /// Whether an autoscaler's `do` is in effect.
    pub autoscaled: bool,
    /// Keys in the queue.
    pub queue_depth: usize,
    /// The queue depth that counts as full at the moment; 0 disables this.
    pub queue_max_depth: u32,
    /// Whether it is suspended: it processes deletions only.
    pub suspended: bool,
    /// The name of the other version's entry that reconciles, if this one does not.
    pub yields_to: Option<String>,
}

impl Phase {
    /// Returns the word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Starting => "Starting",
            Self::Standby => "Standby",
            Self::Running => "Running",
            Self::Deleting => "Deleting",
        }
    }
}

impl OperatorStatus {
    /// Returns how long its workers have run at `now`, in seconds; none if they do not run.
    pub fn uptime_seconds(&self, now: jiff::Timestamp) -> Option<i64> {
        let start = self.started_at?;
        Some(now.duration_since(start).as_secs().max(0))
    }

    /// True if a dependency (`dependsOn`) of it is not ready.
    pub fn has_unhealthy_dependencies(&self) -> bool {
        let mut problems = self.problems.iter();
        problems.any(|problem| problem.reason == KatalogReason::DependencyNotReady)
    }

    /// Returns failed passes as a fraction of all, 0 to 1.
    #[allow(
        clippy::cast_precision_loss,
        reason = "a rate for people: 52 bits of passes are enough"
    )]
    pub fn error_rate(&self) -> f64 {
        if self.passes == 0 {
            0.0
        } else {
            self.failures as f64 / self.passes as f64
        }
    }

    /// True if it runs `wanted`.
    pub fn runs(&self, wanted: &Revised) -> bool {
        let running = self.plans.as_ref().and_then(Plans::running);
        running == Some(wanted)
    }

    /// Returns the plan that it runs in place of `wanted`; none if it runs that one, or none at all.
    pub fn runs_instead_of(&self, wanted: &Revised) -> Option<&Revised> {
        let running = self.plans.as_ref()?.running()?;
        (running != wanted).then_some(running)
    }

    /// Returns all problems: first what the wanted plan waits for, then the problems of the running one.
    pub fn all_problems(&self) -> impl Iterator<Item = &OperatorProblem> {
        self.pending.iter().chain(&self.problems)
    }

    /// True if a pass has shown that the operator works: it succeeded, or failed only because of its custom resource's own
    /// input.
    pub fn has_succeeded(&self) -> bool {
        self.passes > self.failures.saturating_sub(self.own_failures)
    }
}
