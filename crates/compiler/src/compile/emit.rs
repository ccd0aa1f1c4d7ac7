//! `emit.events` and `runtime.cleanup`: the Events that a Katalog declares, and when custom resources are deleted.

use super::conditions;
use crate::scope::At;
use orkestra_language::{
    api::{EmittedEvent, OperatorBox, conditions::CLEANUP_PENDING, observe::EventType},
    diagnostics::Code,
};
use orkestra_plan::{CleanupPlan, Coerce, EmitPlan, OperatorPlan, is_event_reason};

/// Compiles the Events of the operatorBox at `at`.
pub(crate) fn events(at: &At<'_>, declared: &OperatorBox) -> Box<[EmitPlan]> {
    let declared = declared.emit.iter().flat_map(|emit| &emit.events);
    let at = at.field("emit").field("events");
    declared
        .filter_map(|(name, declared)| event(&at.field(name), name, declared))
        .collect()
}

fn event(at: &At<'_>, name: &str, declared: &EmittedEvent) -> Option<EmitPlan> {
    let EmittedEvent {
        type_,
        reason,
        message,
        on,
        gates,
    } = declared;
    let gate = conditions::gate(at, &gates.when, &gates.or);
    let leaf = |field: &str, text: &str| {
        let at = at.field(field);
        if text.trim().is_empty() {
            at.error(Code::Missing, format!("the {field} of an Event is empty"));
        }
        at.leaf(text, Coerce::OptionalText)
    };
    let (reason, message) = (leaf("reason", reason), leaf("message", message));
    let (reason, message) = (reason?, message?);
    if let Some(text) = reason.template.literal().map(str::trim)
        && !text.is_empty()
        && !is_event_reason(text)
    {
        let message =
            format!("`{text}` is not a valid reason: it is one word, such as `BackupDone`");
        at.field("reason").error(Code::BadName, message);
    }
    Some(EmitPlan {
        name: name.into(),
        warns: *type_ == Some(EventType::Warning),
        on: on.unwrap_or_default(),
        reason,
        message,
        gate,
    })
}

/// Compiles the cleanup of the operatorBox at `at`. `conditions` is true if the automatic conditions are written.
pub(crate) fn cleanup(
    at: &At<'_>,
    declared: &OperatorBox,
    conditions: bool,
) -> Option<CleanupPlan> {
    let declared = declared.runtime.as_ref()?.cleanup.as_ref()?;
    let at = at.field("runtime").field("cleanup");
    let gates = &declared.gates;
    let gate = conditions::gate(&at, &gates.when, &gates.or);
    if gates.when.is_empty() && gates.or.is_empty() {
        at.error_hint(
            Code::AsksNothing,
            "without a condition every custom resource would be deleted",
            "add `when`, such as `when: [{field: status.phase, equals: Done}]`",
        );
        return None;
    }
    let after = declared.delete_after.map(|span| span.0).unwrap_or_default();
    if !after.is_zero() && !conditions {
        let message = format!(
            "`deleteAfter` needs the condition `{CLEANUP_PENDING}`, which records since when the conditions hold, but no conditions are written"
        );
        at.field("deleteAfter").error_hint(
            Code::Exclusive,
            message,
            "remove `conditions: false` from `status`, or `deleteAfter`",
        );
    }
    Some(CleanupPlan {
        gate,
        after,
        path: at.kept(),
    })
}

/// Refuses a declared condition of the type that keeps the time of a cleanup.
pub(crate) fn check(at: &At<'_>, plan: &OperatorPlan) {
    if plan.cleanup.is_none() {
        return;
    }
    if plan.watched.built_in {
        let at = at.field("operatorBox").field("runtime").field("cleanup");
        at.error(
            Code::NotSupportedYet,
            "objects of a built-in kind are not deleted: the operator did not create them",
        );
    }
    for (index, own) in plan.status.own.iter().enumerate() {
        if &*own.name == CLEANUP_PENDING {
            let at = at.field("operatorBox").field("status").field("conditions");
            at.index(index).field("type").error_hint(
                Code::StatusReserved,
                format!("`runtime.cleanup` writes the condition `{CLEANUP_PENDING}` itself"),
                "choose another type",
            );
        }
    }
}
