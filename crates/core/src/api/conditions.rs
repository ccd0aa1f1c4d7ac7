//! Conditions as kstatus reads them.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::value::Node;

/// Everything is as declared. Always present.
pub const READY: &str = "Ready";
/// Work is going on. Present only while true.
pub const RECONCILING: &str = "Reconciling";
/// Nothing goes on until the input changes. Present only while true.
pub const STALLED: &str = "Stalled";
/// Another manager applies a field that we declare. Present only while true.
pub const FIELD_CONFLICT: &str = "FieldConflict";

/// Fields of the spec are brought to one form; the reason tells whether that is stored. Present only while true.
pub const NORMALIZED: &str = "Normalized";
/// Rules complete the resource in memory. Present only while true.
pub const MUTATED: &str = "Mutated";
/// The resource does not keep a rule that only warns. Present only while true.
pub const VALIDATION_WARNING: &str = "ValidationWarning";

/// Conditions that are there only while they are true.
const ABNORMAL_TRUE: [&str; 6] = [
    RECONCILING,
    STALLED,
    FIELD_CONFLICT,
    NORMALIZED,
    MUTATED,
    VALIDATION_WARNING,
];

/// Longest message, in bytes. The API server takes 32 KiB; people read less.
pub const MESSAGE_BYTES: usize = 1024;

/// Reasons: one word each, from this fixed set.
pub mod reasons {
    /// All was done as declared.
    pub const RECONCILE_SUCCEEDED: &str = "ReconcileSucceeded";
    /// The last pass failed and is tried again.
    pub const RECONCILE_ERROR: &str = "ReconcileError";
    /// Work is going on.
    pub const PROGRESSING: &str = "Progressing";
    /// Children exist and are not ready yet.
    pub const CHILDREN_NOT_READY: &str = "ChildrenNotReady";
    /// The new revision has errors; the last good one stays in charge.
    pub const INVALID_REVISION: &str = "InvalidRevision";
    /// An entry names no API types, and none can be read.
    pub const NO_API_TYPES: &str = "NoApiTypes";
    /// The custom resource definition is not there yet.
    pub const WAITING_FOR_CRD: &str = "WaitingForCRD";
    /// Another Katalog, which is older, has the same kind.
    pub const CONFLICT: &str = "Conflict";
    /// An object of the name exists and belongs to somebody else.
    pub const NAME_TAKEN: &str = "NameTaken";
    /// Another manager applies a field that we declare.
    pub const FIELD_CONFLICT: &str = "FieldConflict";
    /// What differs from the resource is known to the operator alone.
    pub const IN_MEMORY: &str = "InMemory";
    /// The resource itself is as described.
    pub const PERSISTED: &str = "Persisted";
    /// A rule of `validation` is not kept.
    pub const VALIDATION_FAILED: &str = "ValidationFailed";
    /// A right is missing; the message names the rule.
    pub const FORBIDDEN: &str = "Forbidden";
    /// A template gave an error.
    pub const RENDER_FAILED: &str = "RenderFailed";
    /// The resource is being deleted.
    pub const TERMINATING: &str = "Terminating";
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It doesn't.
    False,
    /// Nobody knows.
    Unknown,
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        })
    }
}

/// One condition of a Katalog or a custom resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, as one word.
    #[serde(default)]
    pub reason: String,
    /// Why, for people.
    #[serde(default)]
    pub message: String,
    /// When `status` last changed, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// The generation that the condition is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What other writers of conditions add; kept as it is.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: BTreeMap<String, Node>,
}

impl Condition {
    /// A condition without a time: [`merge`] sets it. A message that is too long is cut.
    pub fn new(type_: &str, status: ConditionStatus, reason: &str, message: &str) -> Self {
        Condition {
            type_: type_.to_owned(),
            status,
            reason: reason.to_owned(),
            message: cut_message(message),
            last_transition_time: None,
            observed_generation: None,
            other: BTreeMap::new(),
        }
    }

    /// The same condition, about `generation`.
    #[must_use]
    pub fn observed(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }
}

/// Cuts a message to [`MESSAGE_BYTES`], between characters; what was cut shows as `...`.
pub fn cut_message(message: &str) -> String {
    if message.len() <= MESSAGE_BYTES {
        return message.to_owned();
    }
    let mut end = MESSAGE_BYTES - 3;
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &message[..end])
}

/// The conditions to write, from those that are there and those that are wanted.
///
/// - `lastTransitionTime` becomes `now` (whole seconds) where `status` changes, and stays elsewhere.
/// - Conditions of other writers stay, in their place and as they are.
/// - Conditions that are there only while they are true go when they are not wanted or wanted as not true.
/// - New conditions come last, in the order they are wanted.
///
/// Source: kstatus (abnormal-true conditions), Kubernetes API conventions (times).
pub fn merge(existing: &[Condition], wanted: &[Condition], now: jiff::Timestamp) -> Vec<Condition> {
    let is_wanted = |c: &&Condition| c.status == ConditionStatus::True || !is_abnormal(&c.type_);
    let mut merged: Vec<Condition> = Vec::with_capacity(existing.len() + wanted.len());
    for old in existing {
        if merged.iter().any(|done| done.type_ == old.type_) {
            continue;
        }
        match wanted
            .iter()
            .filter(is_wanted)
            .find(|new| new.type_ == old.type_)
        {
            Some(new) => merged.push(stamped(new, Some(old), now)),
            None if is_abnormal(&old.type_) => {}
            None => merged.push(old.clone()),
        }
    }
    for new in wanted.iter().filter(is_wanted) {
        if !merged.iter().any(|done| done.type_ == new.type_) {
            merged.push(stamped(new, None, now));
        }
    }
    merged
}

fn is_abnormal(type_: &str) -> bool {
    ABNORMAL_TRUE.contains(&type_)
}

fn stamped(new: &Condition, old: Option<&Condition>, now: jiff::Timestamp) -> Condition {
    let mut condition = new.clone();
    condition.message = cut_message(&condition.message);
    let kept = old.filter(|old| old.status == new.status);
    condition.last_transition_time = kept
        .and_then(|old| old.last_transition_time.clone())
        .or_else(|| Some(now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> jiff::Timestamp {
        jiff::Timestamp::new(1_700_000_000 + second, 123_456_789).unwrap()
    }

    fn ready(status: ConditionStatus, message: &str) -> Condition {
        Condition::new(READY, status, reasons::PROGRESSING, message)
    }

    fn stalled(status: ConditionStatus) -> Condition {
        Condition::new(STALLED, status, reasons::NO_API_TYPES, "")
    }

    #[test]
    fn the_time_moves_only_with_the_status() {
        let first = merge(&[], &[ready(ConditionStatus::False, "one")], at(0));
        assert_eq!(
            first[0].last_transition_time.as_deref(),
            Some("2023-11-14T22:13:20Z")
        );
        let second = merge(
            &first,
            &[ready(ConditionStatus::False, "two").observed(Some(7))],
            at(60),
        );
        assert_eq!(
            second[0].last_transition_time,
            first[0].last_transition_time
        );
        assert_eq!(
            (second[0].message.as_str(), second[0].observed_generation),
            ("two", Some(7))
        );
        let third = merge(&second, &[ready(ConditionStatus::True, "two")], at(60));
        assert_eq!(
            third[0].last_transition_time.as_deref(),
            Some("2023-11-14T22:14:20Z")
        );
    }

    #[test]
    fn a_merge_of_the_same_changes_nothing() {
        let wanted = [
            ready(ConditionStatus::False, ""),
            stalled(ConditionStatus::True),
        ];
        let once = merge(&[], &wanted, at(0));
        assert_eq!(merge(&once, &wanted, at(99)), once);
    }

    #[test]
    fn conditions_of_others_stay_as_they_are() {
        let theirs: Condition = serde_json::from_value(serde_json::json!({
            "type": "Audited", "status": "False", "lastTransitionTime": "yesterday", "auditor": "moss"
        }))
        .unwrap();
        let merged = merge(
            std::slice::from_ref(&theirs),
            &[ready(ConditionStatus::True, "")],
            at(0),
        );
        assert_eq!(merged[0], theirs);
        assert_eq!(serde_json::to_value(&merged[0]).unwrap()["auditor"], "moss");
        assert_eq!(merged[1].type_, READY);
    }

    #[test]
    fn abnormal_conditions_go_when_they_are_not_true() {
        let there = merge(&[], &[stalled(ConditionStatus::True)], at(0));
        assert_eq!(there.len(), 1);
        assert!(merge(&there, &[], at(1)).is_empty());
        assert!(merge(&there, &[stalled(ConditionStatus::False)], at(1)).is_empty());
        assert!(merge(&[], &[stalled(ConditionStatus::Unknown)], at(1)).is_empty());
    }

    #[test]
    fn long_messages_are_cut_between_characters() {
        let cut = cut_message(&"\u{1f980}".repeat(1000));
        assert!(cut.len() <= MESSAGE_BYTES && cut.ends_with("\u{1f980}..."));
        assert_eq!(cut_message("short"), "short");
    }
}
