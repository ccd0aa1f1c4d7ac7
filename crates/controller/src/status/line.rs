//! The state of an operator as one line, for logs, Events and `ork run`: each state is reported once.

use std::collections::BTreeMap;

use orkestra_language::reasons::KatalogReason;

use super::operating::Operating;
use orkestra_operator::{Phase, events::Severity, rollout::Rollout};

/// A line about an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperatorLine {
    /// The name of the operator.
    pub(crate) operator: String,
    /// Whether there is something to fix.
    pub(crate) severity: Severity,
    /// The reason, in one word.
    pub(crate) reason: KatalogReason,
    /// One sentence about the operator, with the remedy.
    pub(crate) text: String,
}

/// The state of an operator, each part of which is reported when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReportedState {
    /// What it runs, or what it waits for; none while it starts, stops or is suspended.
    activity: Option<Activity>,
    /// Why too many of its passes fail.
    degraded: Option<String>,
    /// What its revision broke.
    broken: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Activity {
    /// The hash of the plan: an entry that a new revision does not change runs on as it is. And the revision.
    Runs(String, String),
    Waits(KatalogReason, String),
}

/// The states that were reported, by the name of the operator.
#[derive(Debug, Default)]
pub(crate) struct ReportedStates(BTreeMap<String, ReportedState>);

impl ReportedStates {
    /// Returns a line for each part of a state that differs from the one that was reported last.
    pub(crate) fn changes(&mut self, now: BTreeMap<String, ReportedState>) -> Vec<OperatorLine> {
        self.0.retain(|name, _| now.contains_key(name));
        let mut lines = Vec::new();
        for (name, state) in now {
            let before = self.0.entry(name.clone()).or_default();
            lines.extend(before.take(&name, state));
        }
        lines
    }
}

impl ReportedState {
    /// Returns the states of operators, by name.
    pub(crate) fn of_all(operators: &[Operating<'_>]) -> BTreeMap<String, Self> {
        let operators = operators.iter();
        let states = operators.map(|one| (one.wanted.plan.name.clone(), Self::of(one)));
        states.collect()
    }

    /// Returns the state of an operator.
    fn of(operator: &Operating<'_>) -> Self {
        let degraded = operator.degraded();
        Self {
            activity: activity(operator),
            degraded: degraded.map(|degraded| degraded.message.clone()),
            broken: operator.rollout().and_then(broken),
        }
    }

    /// Takes `now`; returns the lines about what differs.
    fn take(&mut self, name: &str, now: Self) -> Vec<OperatorLine> {
        let line = |severity, reason, text| OperatorLine {
            operator: name.to_owned(),
            severity,
            reason,
            text,
        };
        let (warning, normal) = (Severity::Warning, Severity::Normal);
        let mut lines = Vec::new();
        // An operator that starts again has nothing new to report until it runs or waits.
        let is_same = match (&self.activity, &now.activity) {
            (Some(Activity::Runs(before, _)), Some(Activity::Runs(now, _))) => before == now,
            (before, now) => before == now,
        };
        if now.activity.is_some() && !is_same {
            lines.extend(now.activity.as_ref().map(|activity| match activity {
                Activity::Runs(_, revision) => line(
                    normal,
                    KatalogReason::Switched,
                    format!("operator {name} runs revision {revision}"),
                ),
                Activity::Waits(reason, why) => {
                    line(warning, *reason, format!("operator {name} waits: {why}"))
                }
            }));
            self.activity = now.activity;
        }
        match (&self.degraded, &now.degraded) {
            (None, Some(why)) => lines.push(line(
                warning,
                KatalogReason::PassesFail,
                format!("operator {name} is degraded: {why}"),
            )),
            (Some(_), None) => lines.push(line(
                normal,
                KatalogReason::Recovered,
                format!("operator {name} has recovered"),
            )),
            _ => {}
        }
        match (&self.broken, &now.broken) {
            (None, Some(why)) => lines.push(line(
                warning,
                KatalogReason::InstancesFailing,
                format!("operator {name}: {why}"),
            )),
            (Some(_), None) => lines.push(line(
                normal,
                KatalogReason::Recovered,
                format!(
                    "operator {name}: no custom resource fails any more that was ready under an earlier revision"
                ),
            )),
            _ => {}
        }
        (self.degraded, self.broken) = (now.degraded, now.broken);
        lines
    }
}

/// Returns what a revision broke, once every custom resource had a pass under it, or too many fail already. While another
/// revision takes over, what the last one broke is reported unchanged by its absence.
fn broken(rollout: &Rollout) -> Option<String> {
    let is_reported = rollout.pending == 0 || rollout.is_failed();
    rollout.failures().filter(|_| is_reported)
}

fn activity(operator: &Operating<'_>) -> Option<Activity> {
    let status = &operator.status;
    if status.suspended {
        return None;
    }
    let grave = status.all_problems().find(|problem| {
        status.phase == Phase::Waiting || Operating::is_hindered_by(problem.reason)
    });
    if let Some(problem) = grave {
        let instead = operator.runs_instead();
        let instead =
            instead.map(|running| format!("; until then revision {} runs", running.revision));
        let message = format!("{}{}", problem.message, instead.unwrap_or_default());
        return Some(Activity::Waits(
            problem.reason,
            with_remedy(problem.reason, message),
        ));
    }
    if operator.conflict {
        let reason = KatalogReason::Conflict;
        let message = "another Katalog has claimed its kind".to_owned();
        return Some(Activity::Waits(reason, with_remedy(reason, message)));
    }
    let runs = status.phase == Phase::Running && status.runs(operator.wanted);
    let wanted = operator.wanted;
    runs.then(|| Activity::Runs(wanted.plan.hash.clone(), wanted.revision.to_string()))
}

/// Appends the remedy to a message that does not name it.
fn with_remedy(reason: KatalogReason, message: String) -> String {
    let named = [
        KatalogReason::CrdMissing,
        KatalogReason::KindNotServed,
        KatalogReason::Forbidden,
    ];
    let remedy = reason.about().remedy;
    if remedy.is_empty() || named.contains(&reason) {
        return message;
    }
    let remedy = remedy.trim_end_matches('.');
    let mut first = remedy.chars();
    let head = first.next().map(|one| one.to_ascii_lowercase());
    let rest = first.as_str();
    format!(
        "{message}; {}{rest}",
        head.map(String::from).unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(reported: &mut ReportedStates, state: &ReportedState) -> Vec<String> {
        let now = BTreeMap::from([("pond".to_owned(), state.clone())]);
        let lines = reported.changes(now).into_iter();
        lines.map(|line| line.text).collect()
    }

    fn runs(revision: &str) -> ReportedState {
        ReportedState {
            activity: Some(Activity::Runs(revision.to_owned(), revision.to_owned())),
            ..ReportedState::default()
        }
    }

    #[test]
    fn an_operator_is_reported_once_for_each_state() {
        let mut reported = ReportedStates::default();
        let starts = ReportedState::default();
        let waits = ReportedState {
            activity: Some(Activity::Waits(
                KatalogReason::CrdMissing,
                "no CRD".to_owned(),
            )),
            ..ReportedState::default()
        };
        assert!(texts(&mut reported, &starts).is_empty());
        assert_eq!(
            texts(&mut reported, &waits),
            ["operator pond waits: no CRD"]
        );
        assert!(texts(&mut reported, &waits).is_empty());
        assert!(texts(&mut reported, &starts).is_empty());
        assert_eq!(
            texts(&mut reported, &runs("r-1")),
            ["operator pond runs revision r-1"]
        );
        // A restart of the same revision is not reported.
        assert!(texts(&mut reported, &starts).is_empty());
        assert!(texts(&mut reported, &runs("r-1")).is_empty());
        assert_eq!(
            texts(&mut reported, &runs("r-2")),
            ["operator pond runs revision r-2"]
        );
        // A removed operator starts over.
        assert!(reported.changes(BTreeMap::new()).is_empty());
        assert_eq!(texts(&mut reported, &runs("r-2")).len(), 1);
    }

    #[test]
    fn an_operator_is_reported_once_when_it_is_degraded_and_once_when_it_has_recovered() {
        let mut reported = ReportedStates::default();
        let degraded = ReportedState {
            degraded: Some("x".to_owned()),
            ..ReportedState::default()
        };
        let recovered = ReportedState::default();
        assert!(texts(&mut reported, &recovered).is_empty());
        assert_eq!(
            texts(&mut reported, &degraded),
            ["operator pond is degraded: x"]
        );
        assert!(texts(&mut reported, &degraded).is_empty());
        assert_eq!(
            texts(&mut reported, &recovered),
            ["operator pond has recovered"]
        );
        assert!(texts(&mut reported, &recovered).is_empty());
        // A removed operator is not reported as recovered.
        assert_eq!(texts(&mut reported, &degraded).len(), 1);
        assert!(reported.changes(BTreeMap::new()).is_empty());
        assert!(texts(&mut reported, &recovered).is_empty());
    }

    #[test]
    fn what_a_revision_broke_is_reported_once() {
        let mut reported = ReportedStates::default();
        let broken = |message: &str| ReportedState {
            broken: Some(message.to_owned()),
            ..runs("r-2")
        };
        assert_eq!(texts(&mut reported, &runs("r-2")).len(), 1);
        assert_eq!(
            texts(&mut reported, &broken("5 of 5 fail")),
            ["operator pond: 5 of 5 fail"]
        );
        // Another count is not another state.
        assert!(texts(&mut reported, &broken("4 of 5 fail")).is_empty());
        assert_eq!(texts(&mut reported, &runs("r-2")).len(), 1);
    }

    #[test]
    fn a_line_names_the_remedy() {
        assert_eq!(
            with_remedy(KatalogReason::DependencyNotReady, "it waits".to_owned()),
            "it waits; check that operator"
        );
        assert_eq!(with_remedy(KatalogReason::Forbidden, "x".to_owned()), "x");
    }
}
