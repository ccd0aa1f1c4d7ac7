//! Why a custom resource is as it is: its condition, what its children wait for, and what the next pass does.

use orkestra_engine::reconcile::kstatus::{Readiness, readiness};
use orkestra_language::reasons::Reason;
use orkestra_object::value::Node;
use orkestra_plan::ChildKey;
use serde::Serialize;

use super::{Place, Subject};
use crate::plan::PlannedChange;

/// Why a custom resource is as it is.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Overview {
    /// The custom resource: `Shop default/north`.
    pub resource: String,
    /// Its condition `Ready`; none if no pass has reported yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyCondition>,
    /// Its children, those that are not ready first.
    pub children: Vec<ChildState>,
    /// Declared children that do not exist, with the reason.
    pub left_out: Vec<Absent>,
    /// What a pass could not decide.
    pub failures: Vec<FailedPart>,
    /// What the next pass does.
    pub next: Vec<PlannedChange>,
}

/// The condition `Ready`.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadyCondition {
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason.
    pub reason: String,
    /// The message.
    pub message: String,
    /// What to do, if something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<&'static str>,
}

/// A child.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildState {
    /// The child.
    pub child: String,
    /// True if it is ready.
    pub ready: bool,
    /// What it waits for, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A declared child that does not exist.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Absent {
    /// Its kind.
    pub kind: String,
    /// Its entry.
    pub entry: Place,
    /// Why it does not exist.
    pub reason: String,
}

/// A part of a pass that failed.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedPart {
    /// Its place.
    pub place: Place,
    /// The problem.
    pub message: String,
}

/// Returns why the custom resource is as it is.
pub(crate) fn overview(subject: &Subject<'_>) -> Overview {
    let mut children: Vec<ChildState> = subject.own().filter_map(state).collect();
    children.sort_by(|one, other| (one.ready, &one.child).cmp(&(other.ready, &other.child)));
    let mut overview = Overview {
        resource: subject.name(),
        ready: condition(&subject.known.cr),
        children,
        left_out: Vec::new(),
        failures: Vec::new(),
        next: subject.changes(),
    };
    match subject.forecast {
        Ok((preview, _)) => {
            overview.left_out = (preview.left_out.iter())
                .map(|one| Absent {
                    kind: one.kind.clone(),
                    entry: subject.place(&one.at),
                    reason: one.why.to_string(),
                })
                .collect();
            overview.failures = (preview.failures.iter())
                .map(|failure| FailedPart {
                    place: subject.place(&failure.at),
                    message: failure.message.clone(),
                })
                .collect();
        }
        Err(why) => overview.failures.push(FailedPart {
            place: subject.place(""),
            message: why.clone(),
        }),
    }
    overview
}

fn condition(cr: &Node) -> Option<ReadyCondition> {
    let conditions = cr.get("status")?.get("conditions")?.as_list()?;
    let mut conditions = conditions.iter();
    let ready = conditions.find(|one| one.get("type").and_then(Node::as_str) == Some("Ready"))?;
    let text = |field| {
        let text = ready.get(field).and_then(Node::as_str);
        text.unwrap_or_default().to_owned()
    };
    let (status, reason) = (text("status"), text("reason"));
    let mut reasons = Reason::ALL.iter();
    let about = reasons
        .find(|one| one.name() == reason)
        .map(|one| one.about());
    let remedy = about.map(|about| about.remedy);
    Some(ReadyCondition {
        remedy: remedy.filter(|remedy| status != "True" && !remedy.is_empty()),
        status,
        reason,
        message: text("message"),
    })
}

fn state(object: &Node) -> Option<ChildState> {
    let key = ChildKey::of(object)?;
    let (ready, detail) = match readiness(&key.kind, object) {
        Readiness::Current => (true, None),
        Readiness::InProgress(text) | Readiness::Failed(text) => (false, Some(text.to_string())),
        Readiness::Unreadable(fault) => (false, Some(fault.to_string())),
    };
    Some(ChildState {
        child: key.to_string(),
        ready,
        detail,
    })
}
