//! Custom resources and children that are partly unreadable: nothing is concluded from the rest.

use std::sync::Arc;

use orkestra_cluster::requests::ClusterError;
use orkestra_engine::reconcile::{
    reason::Reason,
    record::{CrRecord, ObservedChild},
    step::Failure,
    template_data::TemplateData,
    verdict::{Executed, verdict},
};
use orkestra_object::value::{Fault, Path, PathStep};
use orkestra_plan::ChildKey;

use super::{
    Pass, Passed, failure::failure_of_cr, observe, report::report as report_status, soonest,
};
use crate::shared::passes::Failed;

/// Reports on a custom resource why it cannot be reconciled, if its status can be written. Its change leads to the next pass.
pub(crate) async fn report(pass: &Pass<'_>, cr: &Arc<CrRecord>, fault: &Fault) -> Passed {
    pass.memory().ready = false;
    let failure = failure_of_cr(pass.bound, cr, &ClusterError::Unreadable(fault.to_string()));
    let mut executed = Executed {
        failures: vec![failure],
        ..Executed::default()
    };
    let observed = observe(pass.bound, cr);
    let error = Failed::of(&executed, verdict(&observed, &executed));
    let mut next = super::next(&executed, None);
    if !hides_status(&fault.path) {
        let now = pass.shared.context.clock.now();
        let about = (&observed, &TemplateData::default());
        let written = report_status(pass, about, &mut executed, now).await;
        next = soonest(next, written);
    }
    Passed { next, error }
}

/// True if the status cannot be derived from the known parts: a patch might remove entries that other clients wrote.
fn hides_status(path: &Path) -> bool {
    match path.steps().first() {
        None => true,
        Some(PathStep::Field(key)) => &**key == "status",
        Some(PathStep::Index(_)) => false,
    }
}

/// Returns the failure for an unreadable child.
pub(crate) fn failure_of(child: &ObservedChild) -> Option<Failure> {
    let fault = child.record.unread()?;
    Some(failure(&child.key, fault))
}

/// Returns the failure for an unreadable object.
pub(crate) fn failure(key: &ChildKey, fault: &Fault) -> Failure {
    Failure {
        reason: Reason::Unreadable,
        at: key.to_string(),
        message: fault.to_string(),
    }
}
