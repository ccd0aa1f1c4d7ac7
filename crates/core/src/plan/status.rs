//! Values of the conditions of a status.

use crate::api::conditions::ConditionStatus;

/// Parses the status of a condition, ignoring case; empty text is unknown.
pub(crate) fn read_status(text: &str) -> Option<ConditionStatus> {
    if text.is_empty() {
        return Some(ConditionStatus::Unknown);
    }
    let mut all = ConditionStatus::ALL.into_iter();
    all.find(|status| status.as_str().eq_ignore_ascii_case(text))
}
/// Longest reason, in bytes. Source: the same.
const LONGEST_REASON: usize = 1024;

/// True if a text is a valid reason of a condition. Source: Kubernetes, `metav1.Condition`.
pub(crate) fn is_reason(text: &str) -> bool {
    let last = text.chars().last();
    text.len() <= LONGEST_REASON
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && last.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_,:".contains(c))
}
