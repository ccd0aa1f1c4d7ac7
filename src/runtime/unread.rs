//! Custom resources and children that are partly unreadable: nothing is concluded from the rest.

use std::sync::Arc;

use orkestra_cluster::wire::WireError;
use orkestra_core::{
    plan::ChildKey,
    reconcile::{
        reason::Reason,
        record::{CrRecord, ObservedChild},
        sources::Sources,
        step::Failure,
        verdict::{Executed, verdict},
    },
    value::{Fault, Path, Step},
};

use super::{
    bound::Bound,
    memory::Memory,
    metadata::failure_of_cr,
    pass::{self, Failed, Passed, observe, soonest},
    shared::Shared,
};

/// Reports on a custom resource why it cannot be reconciled, if its status can be written. Its change leads to the next pass.
pub(super) async fn report(
    shared: &Shared,
    bound: &Bound,
    cr: &Arc<CrRecord>,
    fault: &Fault,
    memory: &mut Memory,
) -> Passed {
    memory.ready = false;
    let failure = failure_of_cr(bound, cr, &WireError::Unreadable(fault.to_string()));
    let mut executed = Executed {
        failures: vec![failure],
        ..Executed::default()
    };
    let observed = observe(bound, cr);
    let error = Failed::of(&executed, verdict(&observed, &executed).message);
    let mut next = pass::next(&executed, None);
    if !hides_status(&fault.path) {
        let now = shared.context.clock.now();
        let about = (&observed, &Sources::default());
        let written = pass::report(shared, bound, about, &mut executed, now).await;
        next = soonest(next, written);
    }
    Passed { next, error }
}

/// True if the status cannot be derived from the known parts: a patch might remove entries that other clients wrote.
fn hides_status(path: &Path) -> bool {
    match path.steps().first() {
        None => true,
        Some(Step::Field(key)) => &**key == "status",
        Some(Step::Index(_)) => false,
    }
}

/// Returns the failure for an unreadable child.
pub(super) fn failure_of(child: &ObservedChild) -> Option<Failure> {
    let fault = child.record.unread()?;
    Some(failure(&child.key, fault))
}

/// Returns the failure for an unreadable object.
pub(super) fn failure(key: &ChildKey, fault: &Fault) -> Failure {
    Failure {
        reason: Reason::Unreadable,
        at: key.to_string(),
        message: fault.to_string(),
    }
}
