//! Reports of a pass for people: events and logs.

use std::borrow::Cow;

use orkestra_engine::reconcile::{
    emit::{Emitted, EmittedBefore},
    record::{CrRecord, Observed},
    verdict::{Action, Executed, Verdict, format_failures},
};
use orkestra_language::api::{
    conditions::{EVENT_BYTES, fit},
    names,
};
use orkestra_language::reasons::{Reason, Remark};
use orkestra_plan::{ChildKey, ObjectKey};

use super::Pass;
use crate::events::{Event, Severity};

/// How many objects an Event about ignored ones names.
const MOST_NAMED: usize = 5;

/// Publishes an event for each pass that changed something, and one for each new problem.
pub(crate) fn report_events(
    pass: &Pass<'_>,
    after: &Observed,
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
            pass,
            &after.cr,
            Severity::Normal,
            Remark::Reconciled.as_str(),
            changes.join(", "),
        );
    }
    removed(pass, &after.cr, executed);
    doubt(pass, &after.cr, executed);
    let is_late = matches!(executed.deletion, Some((Reason::EndTimedOut, _)));
    if executed.failures.is_empty() && !is_late {
        pass.memory().reported = None;
        return;
    }
    report_failure(pass, &after.cr, (verdict.reason, &verdict.message), || {
        note(executed, verdict)
    });
}

/// Reports a failure by an Event with that note and in the log, once for each new message.
pub(crate) fn report_failure(
    pass: &Pass<'_>,
    cr: &CrRecord,
    (reason, message): (Reason, &str),
    note: impl FnOnce() -> String,
) {
    let reason = reason.as_str();
    let text = format!("{reason}: {message}");
    if pass.memory().reported.as_ref() != Some(&text) {
        tracing::warn!(operator = %pass.bound.plan.name, object = %cr.id.key, reason, error = %message, "pass failed");
        publish(pass, cr, Severity::Warning, reason, note());
        pass.memory().reported = Some(text);
    }
}

/// Describes the problem for an Event; every failure is named.
fn note(executed: &Executed, verdict: &Verdict) -> String {
    if executed.failures.is_empty() {
        verdict.message.clone()
    } else {
        format_failures(&executed.failures, EVENT_BYTES)
    }
}

/// Publishes an event for violated rules that only warn, once for each new text.
pub(crate) fn warn(pass: &Pass<'_>, cr: &CrRecord, warnings: &[String]) {
    let text = (!warnings.is_empty()).then(|| warnings.join("; "));
    if let Some(text) = text
        .as_ref()
        .filter(|text| pass.memory().warned.as_ref() != Some(*text))
    {
        let reason = Remark::ValidationWarning.as_str();
        publish(pass, cr, Severity::Warning, reason, text.clone());
    }
    pass.memory().warned = text;
}

/// Reports the ignored parts of an inventory annotation, once for each new one.
pub(crate) fn ignore(pass: &Pass<'_>, observed: &Observed) {
    let cr = &observed.cr;
    let ignored = cr.inventory.ignored(&observed.inventory);
    if let Some(what) = ignored
        .as_ref()
        .filter(|what| pass.memory().ignored.as_ref() != Some(*what))
    {
        let reason = Remark::InventoryIgnored.as_str();
        let note = format!(
            "annotation {}: no accepted revision of the Katalog declares {what}",
            names::ANNOTATION_INVENTORY
        );
        tracing::warn!(operator = %pass.bound.plan.name, object = %cr.id.key, reason, ignored = what, "ignoring a part of the inventory");
        publish(pass, cr, Severity::Warning, reason, note);
    }
    pass.memory().ignored = ignored;
}

/// Reports objects with the marks of children in namespaces where the custom resource cannot have any, once for each new set.
pub(crate) fn ignore_strangers(pass: &Pass<'_>, cr: &CrRecord, found: &[ChildKey]) {
    let named = found.iter().take(MOST_NAMED).map(ToString::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    let strangers = match found.len().saturating_sub(MOST_NAMED) {
        _ if found.is_empty() => None,
        0 => Some(named),
        more => Some(format!("{named} and {more} more")),
    };
    if let Some(what) = strangers
        .as_ref()
        .filter(|what| pass.memory().strangers.as_ref() != Some(*what))
    {
        let reason = Remark::ChildIgnored.as_str();
        let note =
            format!("not children, because no children are permitted in their namespaces: {what}");
        tracing::warn!(operator = %pass.bound.plan.name, object = %cr.id.key, reason, ignored = what, "ignoring objects with the marks of children");
        publish(pass, cr, Severity::Warning, reason, note);
    }
    pass.memory().strangers = strangers;
}

/// Reports fields of other clients that were removed.
fn removed(pass: &Pass<'_>, cr: &CrRecord, executed: &Executed) {
    if executed.taken.is_empty() {
        return;
    }
    let lines = executed.taken.iter().map(|(key, field)| {
        let managers: Vec<String> = field
            .managers
            .iter()
            .map(|one| format!("`{one}`"))
            .collect();
        let by = if managers.is_empty() {
            String::new()
        } else {
            format!(", which {} had set by update", managers.join(", "))
        };
        format!("{key}: removed `{}`{by}", field.path)
    });
    let note = format!(
        "the API server refused what is declared beside other fields: {}",
        fit(&lines.collect::<Vec<_>>(), EVENT_BYTES)
    );
    let reason = Remark::FieldsRemoved.as_str();
    tracing::info!(operator = %pass.bound.plan.name, object = %cr.id.key, reason, fields = note, "removed fields of other clients");
    publish(pass, cr, Severity::Normal, reason, note);
}

/// Reports comparisons that conditions could not make, if they are new.
fn doubt(pass: &Pass<'_>, cr: &CrRecord, executed: &Executed) {
    let Some(first) = executed.doubts.first() else {
        pass.memory().doubted = None;
        return;
    };
    let lines = executed
        .doubts
        .iter()
        .map(|doubt| format!("{}: {}", doubt.at, doubt.message));
    let text = lines.collect::<Vec<_>>().join("; ");
    if pass.memory().doubted.as_ref() != Some(&text) {
        let reason = first.reason.as_str();
        tracing::warn!(operator = %pass.bound.plan.name, object = %cr.id.key, reason, error = %text, "cannot evaluate a condition");
        publish(pass, cr, Severity::Warning, reason, text.clone());
        pass.memory().doubted = Some(text);
    }
}

/// Publishes the Events that the Katalog declares, each when its state begins. `is_known` is true if an earlier pass has reported
/// on the custom resource; then the first pass of a process only takes note of the states.
pub(crate) fn emit(
    pass: &Pass<'_>,
    cr: &CrRecord,
    (events, held): (Vec<Emitted>, EmittedBefore),
    is_known: bool,
) {
    let is_first = pass.memory().emitted.replace(held).is_none();
    if is_first && is_known {
        return;
    }
    for event in events {
        let severity = if event.warns {
            Severity::Warning
        } else {
            Severity::Normal
        };
        publish(pass, cr, severity, event.reason, event.message);
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
pub(crate) fn publish(
    pass: &Pass<'_>,
    cr: &CrRecord,
    severity: Severity,
    reason: impl Into<Cow<'static, str>>,
    note: String,
) {
    let regarding = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(pass.bound.plan.resource.api_version()),
        kind: Some(pass.bound.plan.resource.kind.to_string()),
        name: Some(cr.id.key.name.to_string()),
        namespace: cr.id.key.namespace.as_deref().map(str::to_owned),
        uid: Some(cr.id.uid.to_string()),
        ..Default::default()
    };
    pass.shared.context.events.publish(Event {
        regarding,
        severity,
        reason: reason.into(),
        note,
    });
}

/// Logs the write of a child of the custom resource `owner`.
pub(crate) fn log_write(pass: &Pass<'_>, owner: &ObjectKey, key: &ChildKey, action: Action) {
    let done = match action {
        Action::Unchanged => return,
        Action::Created => "created",
        Action::Updated => "changed",
        Action::Recreated => "recreated",
        Action::Repaired => "corrected drift",
        Action::Deleted => "deleted",
    };
    let owner = format!("{} {owner}", pass.bound.plan.resource.kind);
    if pass.shared.context.logs_writes {
        tracing::info!(object = %key, %owner, "{done}");
    } else {
        tracing::debug!(object = %key, %owner, "{done}");
    }
}
