//! Reports of a pass for people: events and logs.

use std::borrow::Cow;

use orkestra_core::api::{conditions::EVENT_BYTES, names};
use orkestra_core::reasons::{Reason, Remark};
use orkestra_core::reconcile::{
    emit::{Emitted, EmittedBefore},
    record::{CrRecord, Observed},
    verdict::{Action, Executed, Verdict, told},
};

use super::{bound::Bound, memory::Memory, shared::Shared};
use crate::events::{Event, Severity};

/// Publishes an event for each pass that changed something, and one for each new problem.
pub(super) fn tell(
    shared: &Shared,
    bound: &Bound,
    after: &Observed,
    memory: &mut Memory,
    executed: &Executed,
    verdict: &Verdict,
) {
    let changes: Vec<String> = executed
        .done
        .iter()
        .filter_map(|done| change(done.action).map(|verb| format!("{verb} {}", done.key)))
        .collect();
    if !changes.is_empty() {
        publish(
            shared,
            bound,
            &after.cr,
            Severity::Normal,
            Remark::Reconciled.as_str(),
            changes.join(", "),
        );
    }
    doubt(shared, bound, &after.cr, memory, executed);
    let is_late = matches!(executed.ending, Some((Reason::EndTimedOut, _)));
    if executed.failures.is_empty() && !is_late {
        memory.reported = None;
        return;
    }
    let text = format!("{}: {}", verdict.reason.as_str(), verdict.message);
    if memory.reported.as_ref() != Some(&text) {
        tracing::warn!(operator = %bound.plan.name, object = %after.cr.id.key, reason = verdict.reason.as_str(), error = %verdict.message, "pass failed");
        publish(
            shared,
            bound,
            &after.cr,
            Severity::Warning,
            verdict.reason.as_str(),
            note(executed, verdict),
        );
        memory.reported = Some(text);
    }
}

/// Describes the problem for an Event; every failure is named.
fn note(executed: &Executed, verdict: &Verdict) -> String {
    if executed.failures.is_empty() {
        verdict.message.clone()
    } else {
        told(&executed.failures, EVENT_BYTES)
    }
}

/// Publishes an event for violated rules that only warn, once for each new text.
pub(super) fn warn(
    shared: &Shared,
    bound: &Bound,
    cr: &CrRecord,
    memory: &mut Memory,
    warnings: &[String],
) {
    let text = (!warnings.is_empty()).then(|| warnings.join("; "));
    if let Some(text) = text
        .as_ref()
        .filter(|text| memory.warned.as_ref() != Some(*text))
    {
        let reason = Remark::ValidationWarning.as_str();
        publish(shared, bound, cr, Severity::Warning, reason, text.clone());
    }
    memory.warned = text;
}

/// Reports the ignored parts of an inventory annotation, once for each new one.
pub(super) fn ignore(shared: &Shared, bound: &Bound, observed: &Observed, memory: &mut Memory) {
    let cr = &observed.cr;
    let ignored = cr.inventory.ignored(&observed.inventory);
    if let Some(what) = ignored
        .as_ref()
        .filter(|what| memory.ignored.as_ref() != Some(*what))
    {
        let reason = Remark::InventoryIgnored.as_str();
        let note = format!(
            "annotation {}: no accepted revision of the Katalog declares {what}",
            names::ANNOTATION_INVENTORY
        );
        tracing::warn!(operator = %bound.plan.name, object = %cr.id.key, reason, ignored = what, "ignoring a part of the inventory");
        publish(shared, bound, cr, Severity::Warning, reason, note);
    }
    memory.ignored = ignored;
}

/// Reports comparisons that conditions could not make, if they are new.
fn doubt(shared: &Shared, bound: &Bound, cr: &CrRecord, memory: &mut Memory, executed: &Executed) {
    let Some(first) = executed.doubts.first() else {
        memory.doubted = None;
        return;
    };
    let lines = executed
        .doubts
        .iter()
        .map(|doubt| format!("{}: {}", doubt.at, doubt.message));
    let text = lines.collect::<Vec<_>>().join("; ");
    if memory.doubted.as_ref() != Some(&text) {
        let reason = first.reason.as_str();
        tracing::warn!(operator = %bound.plan.name, object = %cr.id.key, reason, error = %text, "cannot evaluate a condition");
        publish(shared, bound, cr, Severity::Warning, reason, text.clone());
        memory.doubted = Some(text);
    }
}

/// Publishes the Events that the Katalog declares, each when its state begins. `is_known` is true if an earlier pass has reported
/// on the custom resource; then the first pass of a process only takes note of the states.
pub(super) fn emit(
    shared: &Shared,
    bound: &Bound,
    cr: &CrRecord,
    (events, held): (Vec<Emitted>, EmittedBefore),
    (memory, is_known): (&mut Memory, bool),
) {
    let is_first = memory.emitted.replace(held).is_none();
    if is_first && is_known {
        return;
    }
    for event in events {
        let severity = if event.warns {
            Severity::Warning
        } else {
            Severity::Normal
        };
        publish(shared, bound, cr, severity, event.reason, event.message);
    }
}

fn change(action: Action) -> Option<&'static str> {
    match action {
        Action::Unchanged => None,
        Action::Created => Some("created"),
        Action::Updated => Some("updated"),
        Action::Recreated => Some("recreated"),
        Action::Repaired => Some("repaired"),
        Action::Deleted => Some("deleted"),
    }
}

/// Publishes an event about the custom resource.
pub(super) fn publish(
    shared: &Shared,
    bound: &Bound,
    cr: &CrRecord,
    severity: Severity,
    reason: impl Into<Cow<'static, str>>,
    note: String,
) {
    let regarding = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(bound.plan.resource.api_version()),
        kind: Some(bound.plan.resource.kind.to_string()),
        name: Some(cr.id.key.name.to_string()),
        namespace: cr.id.key.namespace.as_deref().map(str::to_owned),
        uid: Some(cr.id.uid.to_string()),
        ..Default::default()
    };
    shared.context.events.publish(Event {
        regarding,
        severity,
        reason: reason.into(),
        note,
    });
}
