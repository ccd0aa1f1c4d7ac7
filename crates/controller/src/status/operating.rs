//! The known state of one operator, and its row in the Katalog's status: pure.

use orkestra_engine::admission::{self, Enforcement};
use orkestra_language::{
    api::{
        FailingInstances, OperatorStatus as Row, RulePlaces,
        conditions::{self, DEGRADED, SUSPENDED},
    },
    reasons::KatalogReason,
};
use orkestra_plan::Revised;

use super::Enforces;
use orkestra_operator::{OperatorStatus, Phase, health::Degraded, rollout::Rollout};

/// The state of an operator that runs an earlier revision than the wanted one.
const UPDATING: &str = "Updating";
/// Problems of a running operator that make its Katalog not ready; others appear only in its row.
const GRAVE: [KatalogReason; 3] = [
    KatalogReason::Forbidden,
    KatalogReason::CrdMissing,
    KatalogReason::KindNotServed,
];

/// How many rules of one place a row names.
const NAMED_RULES: usize = 50;

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
    pub(crate) fn is_ready(&self) -> bool {
        let grave = self
            .status
            .problems
            .iter()
            .any(|problem| Self::is_hindered_by(problem.reason));
        let runs = self.status.phase == Phase::Running && self.status.runs(self.wanted);
        let rollout = &self.status.rollout;
        let is_through = rollout.pending == 0 && !rollout.is_failed();
        runs && !self.conflict && !self.status.suspended && !grave && is_through
    }

    /// True if a problem for this reason keeps its Katalog from being ready.
    pub(crate) fn is_hindered_by(reason: KatalogReason) -> bool {
        GRAVE.contains(&reason)
    }

    pub(crate) fn name(&self) -> &str {
        &self.wanted.plan.name
    }

    /// Returns the plan it runs while the wanted one cannot run yet.
    pub(crate) fn runs_instead(&self) -> Option<&Revised> {
        self.status.runs_instead_of(self.wanted)
    }

    /// Returns since when and why too many of its passes fail; none if it is not running at all.
    pub(crate) fn degraded(&self) -> Option<&Degraded> {
        let runs = self.status.phase == Phase::Running;
        self.status.degraded.as_ref().filter(|_| runs)
    }

    /// Returns how the custom resources stand that a revision has made ready; none if it is not running, or suspended.
    pub(crate) fn rollout(&self) -> Option<&Rollout> {
        let works = self.status.phase == Phase::Running && !self.status.suspended;
        works.then_some(&self.status.rollout)
    }

    /// True if its revision broke more custom resources than it may.
    fn is_failed(&self) -> bool {
        self.rollout().is_some_and(Rollout::is_failed)
    }

    /// Returns why it is not ready, as a reason of the Katalog.
    pub(crate) fn reason(&self) -> KatalogReason {
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
            _ if self.is_failed() => KatalogReason::InstancesFailing,
            Phase::Starting | Phase::Standby => KatalogReason::Progressing,
            // All caches are filled except those of the new plan.
            Phase::Running if self.status.pending.is_empty() && !self.status.runs(self.wanted) => {
                KatalogReason::Progressing
            }
            Phase::Running if self.status.runs(self.wanted) && self.status.rollout.pending > 0 => {
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
        let failures = self.rollout().and_then(Rollout::failures);
        if self.is_failed() {
            let failures = failures.unwrap_or_default();
            return (KatalogReason::InstancesFailing.as_str(), failures);
        }
        if let Some(degraded) = self.degraded() {
            return (KatalogReason::PassesFail.as_str(), degraded.message.clone());
        }
        match self.rollout().and_then(Rollout::progress) {
            Some(progress) => (KatalogReason::Progressing.as_str(), progress),
            None => (
                "",
                failures
                    .or_else(|| status.remark.clone())
                    .unwrap_or_default(),
            ),
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
            _ if self.degraded().is_some() || self.is_failed() => DEGRADED,
            Phase::Running if self.rollout().is_some_and(|rollout| rollout.pending > 0) => UPDATING,
            phase => state(phase),
        }
    }

    pub(crate) fn row(&self) -> Row {
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
            failing: self.rollout().and_then(failing),
            rules: None,
            reason: reason.to_owned(),
            message: conditions::cut_message(&message),
        }
    }

    /// Returns where the rules of the plan that it runs apply when objects are written; none without rules, and while another
    /// Katalog has the kind.
    pub(crate) fn rules(&self, enforces: Enforces) -> Option<RulePlaces> {
        let plans = self.status.plans.as_ref();
        let running = plans.and_then(|plans| plans.running());
        let plan = &running.filter(|_| !self.conflict)?.plan;
        let mut places = RulePlaces::default();
        for row in admission::explain_operator(plan) {
            let is_enforced = match row.place {
                Enforcement::Policy => enforces.policies,
                Enforcement::Webhook => enforces.webhooks,
                Enforcement::Passes | Enforcement::Nowhere => true,
            };
            let place = match row.place {
                Enforcement::Policy if is_enforced => &mut places.policy,
                Enforcement::Webhook if is_enforced => &mut places.webhook,
                Enforcement::Nowhere => &mut places.nowhere,
                _ if row.in_passes => &mut places.passes,
                _ => &mut places.nowhere,
            };
            place.push(format!("{} of {}", row.block, row.rule));
        }
        if plan.admission.protection.resources || plan.admission.protection.definition {
            places.policy.push("protection against deletion".to_owned());
        }
        for place in [
            &mut places.policy,
            &mut places.webhook,
            &mut places.passes,
            &mut places.nowhere,
        ] {
            shorten(place);
        }
        (places != RulePlaces::default()).then_some(places)
    }

    /// Formats `website: Forbidden: cannot list …`.
    pub(crate) fn line(&self) -> String {
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

/// Replaces what exceeds [`NAMED_RULES`] by its number.
fn shorten(rules: &mut Vec<String>) {
    let more = rules.len().saturating_sub(NAMED_RULES);
    if more > 0 {
        rules.truncate(NAMED_RULES);
        rules.push(format!("and {more} more"));
    }
}

/// Returns the custom resources that the revision broke.
fn failing(rollout: &Rollout) -> Option<FailingInstances> {
    let reason = rollout.reason()?;
    Some(FailingInstances {
        count: count(rollout.broken()),
        of: count(rollout.proven),
        reason: reason.as_str().to_owned(),
        names: rollout.named.iter().map(ToString::to_string).collect(),
    })
}

pub(crate) fn state(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "Waiting",
        // A follower writes no status, except at the moment in which it takes over.
        Phase::Starting | Phase::Standby => "Starting",
        Phase::Running => "Running",
        Phase::Deleting => "Deleting",
    }
}

pub(crate) fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
