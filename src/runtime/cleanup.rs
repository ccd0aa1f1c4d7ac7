//! Deletes custom resources whose `runtime.cleanup` is due.

use orkestra_cluster::wire::WireError;
use orkestra_core::{reasons::Remark, reconcile::record::CrRecord};

use super::{
    bound::Bound,
    metadata::failure_of_cr,
    pass::{Next, Passed, WAIT},
    shared::Shared,
    tell::publish,
};
use crate::events::Severity;

/// Deletes the custom resource in exactly the state in which its conditions were evaluated. Its deletion is an event, which
/// queues it again.
pub(super) async fn clean_up(shared: &Shared, bound: &Bound, cr: &CrRecord) -> Passed {
    let answer = shared
        .delete_state(bound.served(), &cr.id.key, &cr.id)
        .await;
    match answer {
        Ok(_) => {
            tracing::info!(operator = %bound.plan.name, object = %cr.id.key, "deleted by `runtime.cleanup`");
            let note = "the conditions of `runtime.cleanup` hold: the operator deletes the custom resource";
            let reason = Remark::CleanedUp.as_str();
            publish(shared, bound, cr, Severity::Normal, reason, note.to_owned());
            Passed::settled()
        }
        Err(WireError::NotFound(_)) => Passed::settled(),
        // It has changed: the next pass evaluates the conditions again.
        Err(WireError::Conflict { .. }) => Passed {
            next: Next::Retry,
            error: None,
        },
        Err(error) => {
            let next = if matches!(error, WireError::Forbidden { .. }) {
                Next::After(WAIT)
            } else {
                Next::Retry
            };
            Passed::failed(next, failure_of_cr(bound, cr, &error).message)
        }
    }
}
