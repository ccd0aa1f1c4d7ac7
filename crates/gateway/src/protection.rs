//! Deletions that an annotation lets pass in spite of a protection: the policy that protects refuses all others, and this
//! records those.

use orkestra_object::value::Projection;

use super::{
    Gateway,
    callers::{ReviewCaller, UNPROVEN},
    review::{Admission, Answer},
};
use orkestra_operator::events::{Event, ObjectReference, Severity};

/// The reason of the Event.
const OVERRIDDEN: &str = "DeletionProtectionOverridden";

/// Records the deletion of a protected object as an Event, and lets it pass. An unproven caller could name any deletion and any user:
/// it records nothing.
pub(crate) fn record(gateway: &Gateway, caller: ReviewCaller, request: &Admission) -> Answer {
    if !caller.is_proven {
        tracing::debug!(peer = %caller.peer, why = UNPROVEN, "a deletion is not recorded");
        return Answer::default();
    }
    let old = request.old_object(Projection::whole).node;
    if request.is_dry_run() || request.operation != "DELETE" {
        return Answer::default();
    }
    let text = |field| old.meta_text(field).map(str::to_owned);
    let api_version = if request.kind.group.is_empty() {
        request.kind.version.clone()
    } else {
        format!("{}/{}", request.kind.group, request.kind.version)
    };
    let user = &request.user_info.username;
    gateway.context.events.publish(Event {
        regarding: ObjectReference {
            api_version: Some(api_version),
            kind: Some(request.kind.name.clone()),
            name: Some(request.name.clone()),
            namespace: text("namespace"),
            uid: text("uid"),
            ..ObjectReference::default()
        },
        severity: Severity::Warning,
        reason: OVERRIDDEN.into(),
        note: format!(
            "user `{user}` deletes the object despite its protection, which its annotation overrides"
        ),
    });
    Answer::default()
}
