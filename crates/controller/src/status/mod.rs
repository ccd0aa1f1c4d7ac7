//! Computes a Katalog's status from the known state of it and of its operators: pure.
//!
//! One file: each condition depends on the others, so they are computed together.

mod line;
mod operating;
mod releasing;

use std::collections::BTreeMap;

use orkestra_language::{
    api::{
        KatalogStatus, OperatedKind, OperatorStatus as Row, SourceStatus,
        conditions::{
            self, Condition, ConditionStatus, DEGRADED, INSTANCES_FAILING, NOT_ENFORCED, READY,
            RECONCILING, STALLED, SUSPENDED,
        },
        names,
    },
    reasons::KatalogReason,
};
use orkestra_plan::Stopped;
use serde_json::{Value, json};

use self::operating::{count, state};
pub(crate) use self::{
    line::{OperatorLine, ReportedState, ReportedStates},
    operating::Operating,
    releasing::Releasing,
};
use super::directory::Readiness;
use orkestra_operator::{OperatorStatus, Phase, rollout::RECONCILED_UNDER};

/// How many operators a message names; the rows name them all.
const NAMED: usize = 3;

/// The message about a suspended Katalog.
const SUSPENSION: &str = "operators are suspended: they process deletions of custom resources only";

/// The verdict on the newest revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is stored, and its operators run it as soon as they can.
    Accepted,
    /// It compiles and is about to run, but could not be stored yet, with the reason if there is one.
    Pending(Option<String>),
    /// It is not known yet: sources are missing. The revision in force stays.
    Waiting {
        /// `Fetching`, or the reason of a source that cannot be fetched.
        reason: KatalogReason,
        /// What is missing.
        message: String,
    },
    /// It has errors; the last good one, if there is any, stays in force.
    Refused {
        /// `InvalidRevision`, `NoApiTypes` or `MotifNotFound`.
        reason: KatalogReason,
        /// The problems.
        message: String,
    },
    /// The Katalog is being deleted.
    Deleted,
}

impl Verdict {
    /// The verdict on a revision that cannot run.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        let Refusal { reason, message } = refusal;
        Self::Refused { reason, message }
    }
}

/// The known state of a Katalog.
#[derive(Debug)]
pub(crate) struct StatusInputs<'a> {
    /// The generation of the verdict.
    pub(crate) generation: Option<i64>,
    /// The verdict on the newest revision.
    pub(crate) verdict: &'a Verdict,
    /// The newest accepted revision.
    pub(crate) revision: Option<&'a str>,
    /// Its operators, sorted by name.
    pub(crate) operators: &'a [Operating<'a>],
    /// Entries of that revision with `enabled: false`.
    pub(crate) disabled: &'a [String],
    /// Those of `disabled` that are enabled and cannot run.
    pub(crate) stopped: &'a [Stopped],
    /// Kinds that are operated, or not released yet.
    pub(crate) operated: &'a [OperatedKind],
    /// Those of `operated` that are to be released, with their progress.
    pub(crate) releasing: &'a BTreeMap<OperatedKind, Releasing>,
    /// Whether it is suspended.
    pub(crate) suspended: bool,
    /// A row for each source.
    pub(crate) sources: &'a [SourceStatus],
    /// Why a source is not up to date; what it gave before runs.
    pub(crate) source_problem: Option<(KatalogReason, &'a str)>,
    /// What it declares and the API server does not enforce, and why.
    pub(crate) unenforced: &'a [String],
    /// What enforces rules when objects are written.
    pub(crate) enforces: Enforces,
    /// What the deletion of the Katalog waits for, beside `releasing`.
    pub(crate) waits: Option<&'a str>,
    /// Why the deletion could not continue.
    pub(crate) deletion_problem: Option<&'a str>,
}

/// What enforces rules when objects are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Enforces {
    /// Whether this installation serves webhooks.
    pub(crate) webhooks: bool,
    /// Whether the API server has policies.
    pub(crate) policies: bool,
}

/// How soon a status has to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// It is already written.
    None,
    /// Only counts differ.
    Counts,
    /// It calls operators ready that are starting.
    Restart,
    /// It describes an earlier generation, and the operators are about to run the current one.
    Rollout,
    /// A condition, a state or a row differs.
    Prompt,
}

/// Computes the status from `inputs`; conditions of other writers stay as they are in `existing`.
///
/// Source: kstatus: `Ready` always, `Reconciling` and `Stalled` while true and never both.
pub(crate) fn compute(
    inputs: &StatusInputs<'_>,
    existing: &KatalogStatus,
    now: jiff::Timestamp,
) -> KatalogStatus {
    let wanted = wanted_conditions(inputs).into_iter();
    let wanted: Vec<_> = wanted
        .map(|condition| condition.observed(inputs.generation))
        .collect();
    let up = inputs
        .operators
        .iter()
        .filter(|operator| operator.is_ready())
        .count();
    let in_force = earlier(inputs, existing);
    KatalogStatus {
        observed_generation: inputs.generation,
        conditions: conditions::merge(&existing.conditions, &wanted, now),
        ready: format!("{up}/{}", inputs.operators.len()),
        instances: instances(inputs.operators, |status| status.instances),
        instances_ready: format!(
            "{}/{}",
            instances(inputs.operators, |status| status.ready),
            instances(inputs.operators, |status| status.instances)
        ),
        wanted_revision: in_force.and(inputs.revision.map(str::to_owned)),
        revision: in_force.or(inputs.revision).map(str::to_owned),
        operators: rows(inputs),
        sources: inputs.sources.to_vec(),
        operated: inputs.operated.to_vec(),
        last_handled_reconcile_at: existing.last_handled_reconcile_at.clone(),
    }
}

/// Returns the conditions that `inputs` give.
fn wanted_conditions(inputs: &StatusInputs<'_>) -> Vec<Condition> {
    let ready = readiness(inputs);
    let refused =
        matches!(inputs.verdict, Verdict::Refused { reason, .. } if reason.is_permanent());
    // The operators work; what they do needs another revision.
    let stalled = refused || ready.reason == KatalogReason::InstancesFailing.as_str();
    let status = if ready.status == Some(true) {
        ConditionStatus::True
    } else {
        ConditionStatus::False
    };
    let mut wanted = vec![Condition::new(READY, status, &ready.reason, &ready.message)];
    let suspended = inputs.suspended && *inputs.verdict != Verdict::Deleted;
    if suspended {
        wanted.push(Condition::new(
            SUSPENDED,
            ConditionStatus::True,
            KatalogReason::Suspended.as_str(),
            SUSPENSION,
        ));
    }
    if ready.status != Some(true) && (stalled || !suspended) {
        let kind = if stalled { STALLED } else { RECONCILING };
        wanted.push(Condition::new(
            kind,
            ConditionStatus::True,
            &ready.reason,
            &ready.message,
        ));
    }
    wanted.extend(degraded(inputs.operators));
    wanted.extend(instances_failing(inputs.operators));
    if !inputs.unenforced.is_empty() {
        wanted.push(Condition::new(
            NOT_ENFORCED,
            ConditionStatus::True,
            KatalogReason::NotEnforced.as_str(),
            &conditions::fit(inputs.unenforced, conditions::MESSAGE_BYTES),
        ));
    }
    wanted
}

/// Returns the condition about operators whose passes fail.
fn degraded(operators: &[Operating<'_>]) -> Option<Condition> {
    let degraded: Vec<String> = operators
        .iter()
        .filter_map(|operator| {
            let degraded = operator.degraded()?;
            let of = match operator.runs_instead() {
                Some(running) => format!("revision {}: ", running.revision),
                None => String::new(),
            };
            Some(format!("{}: {of}{}", operator.name(), degraded.message))
        })
        .collect();
    (!degraded.is_empty()).then(|| {
        Condition::new(
            DEGRADED,
            ConditionStatus::True,
            KatalogReason::PassesFail.as_str(),
            &conditions::fit(&degraded, conditions::MESSAGE_BYTES),
        )
    })
}

/// Returns the condition about custom resources that were ready under an earlier revision and fail now. Its reason is the one
/// that most of them report.
fn instances_failing(operators: &[Operating<'_>]) -> Option<Condition> {
    let rollouts = operators.iter().filter_map(|operator| {
        let rollout = operator.rollout()?;
        let failures = rollout.failures()?;
        let line = format!("{}: {failures}", operator.name());
        Some((rollout.broken(), rollout.reason()?, line))
    });
    let rollouts: Vec<_> = rollouts.collect();
    let (_, reason, _) = rollouts.iter().max_by_key(|(broken, ..)| *broken)?;
    let lines: Vec<_> = rollouts.iter().map(|(.., line)| line.clone()).collect();
    let message = conditions::fit(&lines, conditions::MESSAGE_BYTES);
    let is = ConditionStatus::True;
    Some(Condition::new(
        INSTANCES_FAILING,
        is,
        reason.as_str(),
        &message,
    ))
}

/// Returns the rows of the operators and of the entries that do not run, by name.
fn rows(inputs: &StatusInputs<'_>) -> Vec<Row> {
    let operators = inputs.operators.iter();
    let mut rows: Vec<Row> = operators
        .map(|operator| Row {
            rules: operator.rules(inputs.enforces),
            ..operator.row()
        })
        .collect();
    rows.extend(inputs.disabled.iter().map(|name| {
        let stopped = inputs.stopped.iter().find(|stopped| stopped.name == *name);
        stopped.map_or_else(|| disabled(name), stopped_row)
    }));
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}

/// Returns the row of an entry with `enabled: false`.
fn disabled(name: &str) -> Row {
    Row {
        name: name.to_owned(),
        state: "Disabled".to_owned(),
        ..Row::default()
    }
}

/// Returns the row of an entry that is enabled and cannot run.
fn stopped_row(stopped: &Stopped) -> Row {
    let Stopped {
        name,
        kind,
        message,
    } = stopped;
    Row {
        name: name.clone(),
        group: kind.group.to_string(),
        version: kind.version.to_string(),
        kind: kind.kind.to_string(),
        state: "Stopped".to_owned(),
        reason: KatalogReason::BuiltInKind.as_str().to_owned(),
        message: conditions::cut_message(message),
        ..Row::default()
    }
}

/// Returns the revision in force while an operator runs an earlier one than the newest: the one that the status has named so
/// far if any operator still runs it; none if no operator runs an earlier one.
fn earlier<'a>(inputs: &'a StatusInputs<'_>, existing: &KatalogStatus) -> Option<&'a str> {
    let mut earlier = (inputs.operators.iter())
        .filter_map(Operating::runs_instead)
        .map(|running| &*running.revision)
        .filter(|revision| inputs.revision != Some(revision));
    let first = earlier.clone().next();
    let named = existing.revision.as_deref();
    earlier.find(|revision| named == Some(revision)).or(first)
}

/// Returns the `Ready` condition.
pub(crate) fn readiness(inputs: &StatusInputs<'_>) -> Readiness {
    if let Some(undecided) = readiness_of_verdict(inputs) {
        return undecided;
    }
    if inputs.suspended {
        return not(KatalogReason::Suspended, SUSPENSION);
    }
    let lacking: Vec<_> = inputs
        .operators
        .iter()
        .filter(|operator| !operator.is_ready())
        .collect();
    // The most severe reason applies to the whole Katalog.
    for reason in [
        KatalogReason::OperatorFailed,
        KatalogReason::Forbidden,
        KatalogReason::Conflict,
        KatalogReason::InstancesFailing,
        KatalogReason::Waiting,
        KatalogReason::Progressing,
    ] {
        if lacking.iter().any(|operator| operator.reason() == reason) {
            return not(reason, &lines(&lacking));
        }
    }
    if is_release_hindered(inputs) {
        return not(
            KatalogReason::ReleaseFailed,
            &releasing::message(inputs.releasing),
        );
    }
    if !inputs.releasing.is_empty() {
        return not(
            KatalogReason::Releasing,
            &releasing::message(inputs.releasing),
        );
    }
    if let Some((reason, message)) = inputs.source_problem {
        return not(reason, message);
    }
    if !inputs.unenforced.is_empty() {
        let message = conditions::fit(inputs.unenforced, conditions::MESSAGE_BYTES);
        return not(KatalogReason::NotEnforced, &message);
    }
    Readiness {
        status: Some(true),
        reason: KatalogReason::Running.as_str().into(),
        message: running_message(inputs),
    }
}

/// Returns the readiness of a Katalog whose revision does not run, or not yet; none if it is accepted.
fn readiness_of_verdict(inputs: &StatusInputs<'_>) -> Option<Readiness> {
    Some(match inputs.verdict {
        Verdict::Deleted => not(KatalogReason::Terminating, &terminating_message(inputs)),
        Verdict::Refused { reason, message } => match inputs.source_problem {
            // What was refused may not be what the source has now.
            Some((KatalogReason::SourceFailed, why)) if reason.is_permanent() => {
                not(KatalogReason::SourceFailed, &format!("{why}\n{message}"))
            }
            _ => not(*reason, message),
        },
        Verdict::Waiting { reason, message } => not(*reason, message),
        Verdict::Pending(Some(why)) => not(KatalogReason::RevisionNotStored, why),
        Verdict::Pending(None) => not(KatalogReason::Progressing, "the revision is about to run"),
        Verdict::Accepted => return None,
    })
}

/// Returns `Ready=False`.
fn not(reason: KatalogReason, message: &str) -> Readiness {
    Readiness {
        status: Some(false),
        reason: reason.as_str().into(),
        message: conditions::cut_message(message),
    }
}

/// `2 operators run; stopped: web`.
fn running_message(inputs: &StatusInputs<'_>) -> String {
    let total = inputs.operators.len();
    let message = if total == 1 {
        "1 operator runs".to_owned()
    } else {
        format!("{total} operators run")
    };
    let names: Vec<&str> = inputs.stopped.iter().map(|one| &*one.name).collect();
    if names.is_empty() {
        message
    } else {
        conditions::cut_message(&format!("{message}; stopped: {}", names.join(", ")))
    }
}

/// Returns the `Ready` condition as the leading process wrote it.
pub(crate) fn current_ready(status: &KatalogStatus) -> Readiness {
    let ready = status.conditions.iter().find(|one| one.type_ == READY);
    let Some(ready) = ready else {
        return Readiness {
            status: None,
            reason: KatalogReason::Progressing.as_str().into(),
            message: "the leader has not written a status yet".to_owned(),
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

fn is_release_hindered(inputs: &StatusInputs<'_>) -> bool {
    let mut releases = inputs.releasing.values();
    releases.any(|release| release.problem.is_some())
}

/// Returns what a Katalog that is being deleted waits for; if something prevents its deletion, with the remedy.
fn terminating_message(inputs: &StatusInputs<'_>) -> String {
    let waits = inputs.waits.into_iter().chain(inputs.deletion_problem);
    let mut parts: Vec<_> = waits.map(str::to_owned).collect();
    if parts.is_empty() || !inputs.releasing.is_empty() {
        parts.push(releasing::message(inputs.releasing));
    }
    if inputs.deletion_problem.is_some() || is_release_hindered(inputs) {
        parts.push(format!(
            "fix the cause, or annotate the Katalog with {}=true to delete it anyway",
            names::ANNOTATION_RELEASE
        ));
    } else if inputs.waits.is_some() {
        parts.push(format!(
            "annotate the Katalog with {}=true to delete it without waiting",
            names::ANNOTATION_RELEASE
        ));
    }
    parts.join("; ")
}

/// Returns a number of custom resources of all operators; versions of one kind share the same ones.
fn instances(operators: &[Operating<'_>], of: impl Fn(&OperatorStatus) -> usize) -> i64 {
    let counted = operators
        .iter()
        .filter(|operator| operator.status.yields_to.is_none());
    counted.map(|operator| count(of(&operator.status))).sum()
}

/// Returns how soon `wanted` has to be written over `written`.
pub(crate) fn urgency(written: &KatalogStatus, wanted: &KatalogStatus) -> Urgency {
    if written == wanted {
        Urgency::None
    } else if without_counts(written) == without_counts(wanted) {
        Urgency::Counts
    } else {
        Urgency::Prompt
    }
}

/// True if the only difference is that operators, which `written` calls ready, are starting again.
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
        && written.wanted_revision == wanted.wanted_revision
}

/// True if `written` describes an earlier generation, so that it cannot be mistaken for the current one, and `wanted` only
/// adds that the current one is about to run.
pub(crate) fn is_rollout(written: &KatalogStatus, wanted: &KatalogStatus) -> bool {
    let now = wanted.conditions.iter().find(|one| one.type_ == READY);
    written.revision.is_some()
        && written.observed_generation != wanted.observed_generation
        && now.is_some_and(|ready| ready.reason == KatalogReason::Progressing.as_str())
}

/// Returns the status without the fields that change while operators work normally.
fn without_counts(status: &KatalogStatus) -> KatalogStatus {
    let mut status = status.clone();
    status.instances = 0;
    status.instances_ready.clear();
    // The number of custom resources left, while they are deleted or released, or that fail.
    let counting = [
        KatalogReason::Terminating,
        KatalogReason::Releasing,
        KatalogReason::InstancesFailing,
    ];
    let counts = |condition: &Condition| {
        condition.type_ == INSTANCES_FAILING
            || counting.iter().any(|one| one.as_str() == condition.reason)
            || is_progress(&condition.reason, &condition.message)
    };
    for condition in &mut status.conditions {
        if counts(condition) {
            condition.message.clear();
        }
    }
    for row in &mut status.operators {
        (row.instances, row.ready, row.workers) = (0, 0, 0);
        row.failing = None;
        let is_failed = row.reason == KatalogReason::InstancesFailing.as_str();
        if row.state == state(Phase::Running) || is_failed || is_progress(&row.reason, &row.message)
        {
            row.message.clear();
        }
    }
    status
}

/// True if a message counts the custom resources that are reconciled under a new revision.
fn is_progress(reason: &str, message: &str) -> bool {
    reason == KatalogReason::Progressing.as_str() && message.contains(RECONCILED_UNDER)
}

/// Returns the merge patch that makes a Katalog's status `wanted`, only on the state `resource_version`.
pub(crate) fn patch(wanted: &KatalogStatus, resource_version: Option<&str>) -> Value {
    let mut status = json!({ "conditions": [], "operators": [], "operated": [], "sources": [], "revision": null, "wantedRevision": null });
    if let (Some(all), Ok(Value::Object(fields))) =
        (status.as_object_mut(), serde_json::to_value(wanted))
    {
        all.extend(fields);
    }
    json!({ "metadata": { "resourceVersion": resource_version }, "status": status })
}

/// Why a revision cannot run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// `InvalidRevision`, `NoApiTypes`, `MotifNotFound`, `ChildNotPermitted`, `NotLocked`, `RevisionTooLarge` or `DefinitionRefused`.
    pub(crate) reason: KatalogReason,
    /// The problems with path, message and hint.
    pub(crate) message: String,
}

#[cfg(test)]
mod tests;
