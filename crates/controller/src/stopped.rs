//! The statuses of entries without a running operator.

use orkestra_language::reasons::KatalogReason;
use orkestra_plan::{Plans, Revised};
use tokio::sync::watch;

use orkestra_operator::{OperatorProblem, OperatorStatus, Phase, Role};

/// Returns the status of an entry whose operator failed.
pub(crate) fn failed(wanted: &Revised, role: Role, error: &str) -> watch::Receiver<OperatorStatus> {
    at_rest(
        wanted,
        KatalogReason::OperatorFailed,
        format!("the operator failed and will be restarted: {error}"),
        yields_to(role),
    )
}

/// Returns the status of an entry whose predecessor has not stopped, or whose kind is being released.
pub(crate) fn pending(wanted: &Revised, role: Role) -> watch::Receiver<OperatorStatus> {
    at_rest(
        wanted,
        KatalogReason::Predecessor,
        "the operator that had this kind has not stopped yet".to_owned(),
        yields_to(role),
    )
}

/// Returns the status of an entry that is not started because its Katalog is suspended.
pub(crate) fn suspended(wanted: &Revised) -> watch::Receiver<OperatorStatus> {
    let (_, status) = watch::channel(OperatorStatus {
        plans: Some(Plans::new(wanted.clone())),
        is_blocked: true,
        suspended: true,
        ..OperatorStatus::default()
    });
    status
}

fn yields_to(role: Role) -> Option<String> {
    match role {
        Role::Reconciles => None,
        Role::Yields(to) => Some(to),
    }
}

/// Returns the status of an entry without an operator; it never changes.
pub(crate) fn at_rest(
    wanted: &Revised,
    reason: KatalogReason,
    message: String,
    yields_to: Option<String>,
) -> watch::Receiver<OperatorStatus> {
    let problems = vec![OperatorProblem { reason, message }];
    let (_, status) = watch::channel(OperatorStatus {
        plans: Some(Plans::new(wanted.clone())),
        phase: Phase::Waiting,
        problems,
        yields_to,
        ..OperatorStatus::default()
    });
    status
}
