//! What a status and an Event say about a refused request.

use orkestra_cluster::requests::ClusterError;
use orkestra_engine::reconcile::{record::CrRecord, step::Failure};
use orkestra_language::reasons::Reason;
use orkestra_plan::ChildKey;

use super::consequence::reason_of;
use crate::shared::bound_plan::BoundPlan;

/// Replaces messages of the API server that may contain a Secret's values.
const WITHHELD: &str =
    "the API server's message is not shown, because the object contains values of a Secret";

/// Describes a refused request.
pub(crate) fn failure(key: &ChildKey, error: &ClusterError) -> Failure {
    Failure {
        reason: reason_of(error),
        at: key.to_string(),
        message: error.to_string(),
    }
}

/// Removes the API server's message from the failure to write an object if the message may contain a Secret's values: the object
/// does, and the reason is one whose messages quote values.
pub(crate) fn withheld(failure: Failure, shows_secrets: bool) -> Failure {
    let quotes = matches!(
        failure.reason,
        Reason::Invalid | Reason::Denied | Reason::Unavailable
    );
    if shows_secrets && quotes {
        Failure {
            message: WITHHELD.to_owned(),
            ..failure
        }
    } else {
        failure
    }
}

/// Describes a refused request for the custom resource.
pub(crate) fn failure_of_cr(bound: &BoundPlan, cr: &CrRecord, error: &ClusterError) -> Failure {
    failure(
        &ChildKey {
            kind: bound.plan.resource.group_kind(),
            object: cr.id.key.clone(),
        },
        error,
    )
}
