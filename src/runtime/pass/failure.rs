//! What a status and an Event say about a refused request.

use orkestra_cluster::wire::WireError;
use orkestra_core::{
    plan::ChildKey,
    reconcile::{record::CrRecord, step::Failure},
};

use crate::runtime::shared::bound_plan::BoundPlan;

/// Replaces messages of the API server that may contain a Secret's values.
pub(super) const WITHHELD: &str =
    "the API server's message is not shown, because the object contains values of a Secret";

/// Describes a refused request.
pub(in crate::runtime) fn failure(key: &ChildKey, error: &WireError) -> Failure {
    Failure {
        reason: error.reason(),
        at: key.to_string(),
        message: error.to_string(),
    }
}

/// Describes a refused request for the custom resource.
pub(in crate::runtime) fn failure_of_cr(
    bound: &BoundPlan,
    cr: &CrRecord,
    error: &WireError,
) -> Failure {
    failure(
        &ChildKey {
            kind: bound.plan.resource.group_kind(),
            object: cr.id.key.clone(),
        },
        error,
    )
}
