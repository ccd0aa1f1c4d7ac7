//! `status.conditions`: user-defined conditions.

use std::collections::BTreeSet;

use crate::{compile::conditions, scope::At};
use orkestra_language::{
    api::{StatusCondition, conditions as ours},
    diagnostics::Code,
};
use orkestra_plan::{Coerce, Leaf, OwnCondition, is_reason, read_status};

/// Condition types that Orkestra writes.
const RESERVED: [&str; 4] = [
    ours::READY,
    ours::RECONCILING,
    ours::STALLED,
    ours::FIELD_CONFLICT,
];
/// Longest type, in bytes. Source: Kubernetes, `metav1.Condition`.
const LONGEST_TYPE: usize = 316;

/// Compiles the list at `at`; invalid conditions are reported and left out.
pub(crate) fn conditions(at: &At<'_>, declared: &[StatusCondition]) -> Box<[OwnCondition]> {
    let mut seen = BTreeSet::new();
    let mut compiled = Vec::new();
    for (index, declared) in declared.iter().enumerate() {
        let at = at.index(index);
        if !seen.insert(declared.type_.as_str()) {
            let message = format!("the condition `{}` is already declared", declared.type_);
            at.field("type").error(Code::SetTwice, message);
        }
        compiled.extend(condition(&at, declared));
    }
    compiled.into()
}

fn condition(at: &At<'_>, declared: &StatusCondition) -> Option<OwnCondition> {
    let StatusCondition {
        type_,
        status,
        reason,
        message,
        when,
        or,
    } = declared;
    let is_legal = check_type(&at.field("type"), type_);
    let gate = conditions::gate(at, when, or);
    if status.is_none() && when.is_empty() && or.is_empty() {
        at.error_hint(
            Code::AsksNothing,
            "the condition has neither `status` nor `when`",
            "add `status`, or `when` for it to be true",
        );
        return None;
    }
    let leaf = |name: &str, text: Option<String>| match text {
        Some(text) => at.field(name).leaf(&text, Coerce::OptionalText).map(Some),
        None => Some(None),
    };
    let status = leaf("status", status.as_ref().map(ToString::to_string));
    let reason = leaf("reason", reason.as_ref().map(ToString::to_string));
    let message = leaf("message", message.as_ref().map(ToString::to_string));
    let (status, reason, message) = (status?, reason?, message?);
    let literal = |leaf: &Option<Leaf>| {
        let text = leaf.as_ref()?.template.literal()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    if let Some(text) = literal(&status)
        && read_status(&text).is_none()
    {
        let message = format!("expected True, False or Unknown, found `{text}`");
        at.field("status").error(Code::UnknownWord, message);
    }
    if let Some(text) = literal(&reason)
        && !is_reason(&text)
    {
        let message =
            format!("`{text}` is not a valid reason: it must be one word, such as `NoSpace`");
        at.field("reason").error(Code::BadName, message);
    }
    is_legal.then(|| OwnCondition {
        name: type_.as_str().into(),
        status,
        reason,
        message,
        gate,
        path: at.kept(),
    })
}

fn check_type(at: &At<'_>, name: &str) -> bool {
    if RESERVED.contains(&name) {
        at.error_hint(
            Code::StatusReserved,
            format!("Orkestra writes the condition `{name}` itself"),
            "choose another type; `readyWhen` says what `Ready` waits for",
        );
        return false;
    }
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_legal = name.len() <= LONGEST_TYPE
        && edge(name.chars().next())
        && edge(name.chars().last())
        && name.chars().all(inner);
    if !is_legal {
        let message = format!(
            "`{name}` is not a valid condition type: it must be one word, such as `BackedUp`"
        );
        at.error(Code::BadName, message);
    }
    is_legal
}
