//! Deletes custom resources whose `runtime.cleanup` is due.

use orkestra_engine::reconcile::record::CrRecord;
use orkestra_language::reasons::Remark;

use super::{Pass, Passed, events::publish, refused};
use crate::events::Severity;

/// Deletes the custom resource in exactly the state in which its conditions were evaluated. Its deletion is an event, which
/// queues it again.
pub(crate) async fn clean_up(pass: &Pass<'_>, cr: &CrRecord) -> Passed {
    let answer = pass
        .delete_state(pass.bound.served(), &cr.id.key, &cr.id)
        .await;
    match answer {
        Ok(_) => {
            tracing::info!(operator = %pass.bound.plan.name, object = %cr.id.key, "deleted by `runtime.cleanup`");
            let note = "the conditions of `runtime.cleanup` hold: the operator deletes the custom resource";
            let reason = Remark::CleanedUp.as_str();
            publish(pass, cr, Severity::Normal, reason, note.to_owned());
            Passed::settled()
        }
        // If it has changed, the next pass evaluates the conditions again.
        Err(error) => refused(pass, cr, &error),
    }
}
