//! The status that is written to custom resources.

use super::{Coerce, Gate, Leaf, PlanPlace};
use orkestra_language::api::conditions::ConditionStatus;
use orkestra_object::value::Path;

/// The status that is written to the custom resource.
#[derive(Debug)]
pub struct StatusPlan {
    /// True if conditions are written (`status.conditions: false` disables them).
    pub conditions: bool,
    /// User-defined conditions.
    pub own: Box<[OwnCondition]>,
    /// An additional gate for `Ready`.
    pub ready_when: Gate,
    /// Declared fields, those of Motifs and includes first, in declaration order; a later one with the same path takes
    /// precedence.
    pub fields: Box<[StatusFieldPlan]>,
}

/// One entry of `status.fields`.
#[derive(Debug)]
pub struct StatusFieldPlan {
    /// The import that declares it, as an index into [`OperatorPlan::imports`](super::OperatorPlan::imports); `None` for
    /// the Katalog.
    pub import: Option<usize>,
    /// The path relative to `status`.
    pub path: Path,
    /// The value.
    pub value: Leaf,
    /// The declared type; `None` uses the CRD's schema, else the value's own type.
    pub kind: Option<Coerce>,
    /// The gate of the field; if closed, the old value stays.
    pub gate: Gate,
    /// True if it is cleared when the gate is closed.
    pub clear: bool,
}

/// One entry of `status.conditions`.
#[derive(Debug)]
pub struct OwnCondition {
    /// Its type.
    pub name: Box<str>,
    /// `True`, `False` or `Unknown`; `None` uses the gate.
    pub status: Option<Leaf>,
    /// A single word.
    pub reason: Option<Leaf>,
    /// The message.
    pub message: Option<Leaf>,
    /// The gate of the condition; if closed, the condition stays unchanged.
    pub gate: Gate,
    /// Its path in the Katalog, for messages.
    pub path: PlanPlace,
}

/// Parses the status of a condition, ignoring case; empty text is unknown.
pub fn read_status(text: &str) -> Option<ConditionStatus> {
    if text.is_empty() {
        return Some(ConditionStatus::Unknown);
    }
    let mut all = ConditionStatus::ALL.into_iter();
    all.find(|status| status.as_str().eq_ignore_ascii_case(text))
}
/// Longest reason, in bytes. Source: Kubernetes, `metav1.Condition`.
const LONGEST_REASON: usize = 1024;

/// True if a text is a valid reason of a condition. Source: Kubernetes, `metav1.Condition`.
pub fn is_reason(text: &str) -> bool {
    let last = text.chars().last();
    text.len() <= LONGEST_REASON
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && last.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c))
}
