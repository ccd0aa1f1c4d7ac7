//! A Katalog's status, computed from what is known of it and of its operators: pure.

use std::collections::BTreeMap;

use orkestra_core::{
    api::{
        KatalogStatus, OperatedKind, OperatorStatus as Row,
        conditions::{self, Condition, ConditionStatus, DEGRADED, READY, RECONCILING, STALLED},
    },
    plan::OperatorPlan,
    reasons::KatalogReason,
};
use serde_json::{Value, json};

use super::directory::Readiness;
use crate::runtime::{OperatorStatus, Phase, health::Degraded};

/// Operators named in a message; the rows name them all.
const NAMED: usize = 3;
/// Problems of a running operator that make its Katalog not ready; others stand in its row alone.
const GRAVE: [KatalogReason; 3] = [
    KatalogReason::Forbidden,
    KatalogReason::CrdMissing,
    KatalogReason::KindNotServed,
];

/// What was found about the newest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It runs.
    Accepted,
    /// It compiles, and is about to run: it could not be stored yet, for this reason if there is one.
    Pending(Option<String>),
    /// It has errors; the last good one, if there is any, stays in charge.
    Refused {
        /// `InvalidRevision`, `NoApiTypes` or `MotifNotFound`.
        reason: KatalogReason,
        /// The problems.
        message: String,
    },
    /// The Katalog is being deleted.
    Deleted,
}

/// What is known of a Katalog.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// `metadata.generation`.
    pub(crate) generation: Option<i64>,
    /// What was found about the newest revision.
    pub(crate) verdict: &'a Verdict,
    /// The revision that runs.
    pub(crate) revision: Option<&'a str>,
    /// Its operators, sorted by name.
    pub(crate) operators: &'a [Operating<'a>],
    /// Entries of the running revision with `enabled: false`.
    pub(crate) disabled: &'a [String],
    /// Kinds operated, or not released yet.
    pub(crate) operated: &'a [OperatedKind],
    /// Those of `operated` that are to be released, with what last hindered it.
    pub(crate) releasing: &'a BTreeMap<OperatedKind, Option<String>>,
}

/// What is known of one operator.
#[derive(Debug)]
pub(crate) struct Operating<'a> {
    /// What it follows.
    pub(crate) plan: &'a OperatorPlan,
    /// What it says of itself.
    pub(crate) status: OperatorStatus,
    /// Whether another Katalog has its kind.
    pub(crate) conflict: bool,
}

/// How soon a status has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It is written.
    None,
    /// Only counts differ.
    Counts,
    /// It calls operators ready that are coming up.
    Restart,
    /// A condition, a state or a row differs.
    Prompt,
}

impl Operating<'_> {
    fn is_ready(&self) -> bool {
        let grave = self
            .status
            .problems
            .iter()
            .any(|problem| GRAVE.contains(&problem.reason));
        !self.conflict && !grave && self.status.phase == Phase::Running
    }

    /// Since when and why too many of its passes fail; none while it does not run at all.
    pub(crate) fn degraded(&self) -> Option<&Degraded> {
        let runs = self.status.phase == Phase::Running;
        self.status.degraded.as_ref().filter(|_| runs)
    }

    /// Why it is not ready, as the Katalog's own reason.
    fn reason(&self) -> KatalogReason {
        let has = |reason| {
            self.status
                .problems
                .iter()
                .any(|problem| problem.reason == reason)
        };
        match self.status.phase {
            _ if has(KatalogReason::Forbidden) => KatalogReason::Forbidden,
            _ if self.conflict => KatalogReason::Conflict,
            Phase::Starting | Phase::Standby => KatalogReason::Progressing,
            _ => KatalogReason::Waiting,
        }
    }

    fn row(&self) -> Row {
        let Self { plan, status, .. } = self;
        let (reason, message) = match (status.problems.first(), &status.yields_to) {
            (Some(problem), _) => (problem.reason.as_str(), problem.message.clone()),
            (None, Some(to)) => (
                KatalogReason::Yields.as_str(),
                format!("entry {to} reconciles this kind, in another version"),
            ),
            (None, None) => match self.degraded() {
                Some(degraded) => (KatalogReason::PassesFail.as_str(), degraded.message.clone()),
                None => ("", String::new()),
            },
        };
        Row {
            name: plan.name.clone(),
            group: plan.resource.group.to_string(),
            version: plan.resource.version.to_string(),
            kind: plan.resource.kind.to_string(),
            state: match self.degraded() {
                Some(_) => DEGRADED.to_owned(),
                None => state(status.phase).to_owned(),
            },
            workers: u32::try_from(status.steady_workers).unwrap_or(u32::MAX),
            instances: count(status.instances),
            ready: count(status.ready),
            reason: reason.to_owned(),
            message: conditions::cut_message(&message),
        }
    }

    /// `website: Forbidden: cannot list …`.
    fn line(&self) -> String {
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

fn state(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "Waiting",
        // Who stands by writes no status, but for the moment in which it takes over.
        Phase::Starting | Phase::Standby => "Starting",
        Phase::Running => "Running",
        Phase::Deleting => "Deleting",
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The status that tells `facts`; conditions of others stay as they are in `existing`.
///
/// Source: kstatus: `Ready` always, `Reconciling` and `Stalled` while true and never both.
pub(crate) fn compute(
    facts: &Facts<'_>,
    existing: &KatalogStatus,
    now: jiff::Timestamp,
) -> KatalogStatus {
    let ready = readiness(facts);
    let stalled = matches!(facts.verdict, Verdict::Refused { .. });
    let status = if ready.status == Some(true) {
        ConditionStatus::True
    } else {
        ConditionStatus::False
    };
    let mut wanted = vec![Condition::new(READY, status, &ready.reason, &ready.message)];
    if ready.status != Some(true) {
        let kind = if stalled { STALLED } else { RECONCILING };
        wanted.push(Condition::new(
            kind,
            ConditionStatus::True,
            &ready.reason,
            &ready.message,
        ));
    }
    let degraded: Vec<String> = facts
        .operators
        .iter()
        .filter_map(|operator| {
            let degraded = operator.degraded()?;
            Some(format!("{}: {}", operator.plan.name, degraded.message))
        })
        .collect();
    if !degraded.is_empty() {
        wanted.push(Condition::new(
            DEGRADED,
            ConditionStatus::True,
            KatalogReason::PassesFail.as_str(),
            &conditions::fit(&degraded, conditions::MESSAGE_BYTES),
        ));
    }
    let wanted: Vec<_> = wanted
        .into_iter()
        .map(|condition| condition.observed(facts.generation))
        .collect();
    let mut rows: Vec<Row> = facts.operators.iter().map(Operating::row).collect();
    rows.extend(facts.disabled.iter().map(|name| Row {
        name: name.clone(),
        state: "Disabled".to_owned(),
        ..Row::default()
    }));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let up = facts
        .operators
        .iter()
        .filter(|operator| operator.is_ready())
        .count();
    KatalogStatus {
        observed_generation: facts.generation,
        conditions: conditions::merge(&existing.conditions, &wanted, now),
        ready: format!("{up}/{}", facts.operators.len()),
        instances: instances(facts.operators),
        revision: facts.revision.map(str::to_owned),
        operators: rows,
        operated: facts.operated.to_vec(),
    }
}

/// The `Ready` condition.
pub(crate) fn readiness(facts: &Facts<'_>) -> Readiness {
    let not = |reason: KatalogReason, message: String| Readiness {
        status: Some(false),
        reason: reason.as_str().into(),
        message: conditions::cut_message(&message),
    };
    match facts.verdict {
        Verdict::Deleted => {
            return not(KatalogReason::Terminating, release_message(facts.releasing));
        }
        Verdict::Refused { reason, message } => return not(*reason, message.clone()),
        Verdict::Pending(Some(why)) => return not(KatalogReason::RevisionNotStored, why.clone()),
        Verdict::Pending(None) => {
            return not(
                KatalogReason::Progressing,
                "the revision is about to run".to_owned(),
            );
        }
        Verdict::Accepted => {}
    }
    let lacking: Vec<_> = facts
        .operators
        .iter()
        .filter(|operator| !operator.is_ready())
        .collect();
    // The gravest reason names the whole.
    for reason in [
        KatalogReason::Forbidden,
        KatalogReason::Conflict,
        KatalogReason::Waiting,
        KatalogReason::Progressing,
    ] {
        if lacking.iter().any(|operator| operator.reason() == reason) {
            return not(reason, lines(&lacking));
        }
    }
    if facts.releasing.values().any(Option::is_some) {
        return not(
            KatalogReason::ReleaseFailed,
            release_message(facts.releasing),
        );
    }
    if !facts.releasing.is_empty() {
        return not(KatalogReason::Releasing, release_message(facts.releasing));
    }
    let total = facts.operators.len();
    let message = if total == 1 {
        "1 operator runs".to_owned()
    } else {
        format!("{total} operators run")
    };
    Readiness {
        status: Some(true),
        reason: KatalogReason::Running.as_str().into(),
        message,
    }
}

/// The `Ready` condition as the process that leads has written it.
pub(crate) fn told(status: &KatalogStatus) -> Readiness {
    let ready = status.conditions.iter().find(|one| one.type_ == READY);
    let Some(ready) = ready else {
        return Readiness {
            status: None,
            reason: KatalogReason::Progressing.as_str().into(),
            message: "the process that leads has said nothing yet".to_owned(),
        };
    };
    Readiness {
        status: match ready.status {
            ConditionStatus::True => Some(true),
            ConditionStatus::False => Some(false),
            ConditionStatus::Unknown => None,
        },
        reason: ready.reason.clone().into(),
        message: ready.message.clone(),
    }
}

fn lines(operators: &[&Operating<'_>]) -> String {
    let mut lines: Vec<_> = operators
        .iter()
        .take(NAMED)
        .map(|operator| operator.line())
        .collect();
    if operators.len() > NAMED {
        lines.push(format!("and {} more", operators.len() - NAMED));
    }
    lines.join("; ")
}

fn release_message(releasing: &BTreeMap<OperatedKind, Option<String>>) -> String {
    if releasing.is_empty() {
        return "everything is released".to_owned();
    }
    let lines = releasing.iter().map(|(kind, problem)| match problem {
        None => format!("letting go of {}.{}", kind.plural, kind.group),
        Some(problem) => format!("letting go of {}.{}: {problem}", kind.plural, kind.group),
    });
    lines.collect::<Vec<_>>().join("; ")
}

/// Custom resources of all operators; versions of one kind have the same ones.
fn instances(operators: &[Operating<'_>]) -> i64 {
    let counted = operators
        .iter()
        .filter(|operator| operator.status.yields_to.is_none());
    counted
        .map(|operator| count(operator.status.instances))
        .sum()
}

/// How soon `wanted` has to be written over `written`.
pub(crate) fn urgency(written: &KatalogStatus, wanted: &KatalogStatus) -> Urgency {
    if written == wanted {
        Urgency::None
    } else if without_counts(written) == without_counts(wanted) {
        Urgency::Counts
    } else {
        Urgency::Prompt
    }
}

/// Whether `wanted` says no more than that the operators, which `written` calls ready, are coming up again.
pub(crate) fn is_restart(written: &KatalogStatus, wanted: &KatalogStatus) -> bool {
    let ready = |status: &KatalogStatus| {
        status
            .conditions
            .iter()
            .find(|condition| condition.type_ == READY)
            .cloned()
    };
    let (Some(before), Some(now)) = (ready(written), ready(wanted)) else {
        return false;
    };
    before.status == ConditionStatus::True
        && [KatalogReason::Progressing, KatalogReason::Waiting]
            .iter()
            .any(|reason| reason.as_str() == now.reason)
        && written.observed_generation == wanted.observed_generation
        && written.revision == wanted.revision
}

/// What is left when everything is taken out that changes while operators simply work.
fn without_counts(status: &KatalogStatus) -> KatalogStatus {
    let mut status = status.clone();
    status.instances = 0;
    for row in &mut status.operators {
        (row.instances, row.ready, row.workers) = (0, 0, 0);
        if row.state == state(Phase::Running) {
            row.message.clear();
        }
    }
    status
}

/// The merge patch that makes a Katalog's status `wanted`, only on the state `resource_version`.
pub(crate) fn patch(wanted: &KatalogStatus, resource_version: Option<&str>) -> Value {
    let mut status = json!({ "conditions": [], "operators": [], "operated": [], "revision": null });
    if let (Some(all), Ok(Value::Object(fields))) =
        (status.as_object_mut(), serde_json::to_value(wanted))
    {
        all.extend(fields);
    }
    json!({ "metadata": { "resourceVersion": resource_version }, "status": status })
}

#[cfg(test)]
mod tests;
