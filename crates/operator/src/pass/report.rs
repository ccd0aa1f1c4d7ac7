//! Writes the status of a custom resource after a pass.

use jiff::Timestamp;
use orkestra_cluster::requests::ClusterError;
use orkestra_engine::reconcile::{
    record::{CrRecord, Observed},
    status::{StatusPatch, reported, status},
    step::Failure,
    template_data::TemplateData,
    verdict::Executed,
};
use orkestra_object::value::project;

use super::{
    NextPass, Pass,
    failure::failure_of_cr,
    outcome::{WAIT, after_failure},
};

/// Writes the status if it differs.
pub(crate) async fn report(
    pass: &Pass<'_>,
    (after, sources): (&Observed, &TemplateData),
    executed: &mut Executed,
    now: Timestamp,
) -> NextPass {
    let patch = status(
        &pass.bound.plan,
        &pass.bound.crd_status,
        after,
        sources,
        executed,
        now,
    );
    match write_status(pass, after, patch).await {
        Ok(next) => next,
        Err(failed) => {
            let next = after_failure(failed.reason);
            executed.failures.push(failed);
            next
        }
    }
}

/// Writes a status patch, if there is one.
///
/// # Errors
/// The failure.
pub(crate) async fn write_status(
    pass: &Pass<'_>,
    after: &Observed,
    patch: Option<StatusPatch>,
) -> Result<NextPass, Failure> {
    let plan = &pass.bound.plan.hash;
    let Some(patch) = patch else {
        if reported(&pass.bound.plan, &pass.bound.crd_status, &after.cr) == Some(true) {
            pass.shared.status_accepted(plan);
        }
        return Ok(NextPass::Settled);
    };
    let key = &after.cr.id.key;
    Ok(
        match pass
            .patch_status(
                pass.bound.served(),
                key,
                patch.subresource,
                &patch.body,
                &pass.bound.manager,
            )
            .await
        {
            Ok(answer) => {
                pass.shared.status_accepted(plan);
                let Some(now) = pass.bound.crs.store().answer(&answer) else {
                    return Ok(NextPass::Settled);
                };
                // Only a change of a path that a template reads needs another pass: a state machine continues without a
                // timer.
                let read = |record: &CrRecord| project(&record.view, &pass.bound.plan.reads.cr);
                if read(&now) == read(&after.cr) {
                    NextPass::Settled
                } else {
                    NextPass::Again
                }
            }
            Err(ClusterError::NotFound(_)) => NextPass::Settled,
            Err(ClusterError::Conflict { .. }) => NextPass::Retry,
            Err(ClusterError::Forbidden { .. }) => NextPass::After(WAIT),
            Err(error @ ClusterError::Invalid { .. }) => {
                // It quotes no value of a Secret: the compiler refuses a status with one.
                let words = error.to_string();
                let mut failed = failure_of_cr(pass.bound, &after.cr, &error);
                failed.message = format!("the status is not written: {words}");
                pass.shared.status_refused(plan, words);
                return Err(failed);
            }
            Err(error) => return Err(failure_of_cr(pass.bound, &after.cr, &error)),
        },
    )
}
