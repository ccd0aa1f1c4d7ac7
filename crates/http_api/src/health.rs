//! The health of an operator, for probes.

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};

use super::{
    answers::Health,
    operators::{problems, ready_count, reason, state_of},
};
use orkestra_controller::{KatalogView, OperatorView};
use orkestra_operator::health::OperatorState;

/// The status code for probes.
fn code(state: OperatorState) -> StatusCode {
    if state.is_well() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// `/katalog/{…}/{entry}/health`: 200 or 503.
pub(crate) fn health(
    katalog: &KatalogView,
    operator: &OperatorView,
    leads: bool,
    now: jiff::Timestamp,
) -> Response {
    let status = operator.status.borrow();
    let state = state_of(operator, &status);
    let code = code(state);
    let text = |time: jiff::Timestamp| time.to_string();
    // The results of passes are known only where they run.
    let page = Health {
        name: operator.name().to_owned(),
        namespace: katalog.reference.namespace.clone(),
        katalog: katalog.reference.name.clone(),
        state: state.into(),
        status: code.as_u16(),
        is_konductor: leads,
        healthy: state.is_well(),
        started: leads.then_some(status.started_at.is_some()),
        pending: state == OperatorState::Pending,
        reason: reason(operator, &status),
        started_at: status.started_at.map(text),
        uptime_seconds: status.uptime_seconds(now),
        queue_depth: status.queue_depth,
        error_rate: leads.then(|| status.error_rate()),
        consecutive_fails: leads.then_some(status.consecutive_failures),
        degraded_since: (status.degraded.as_ref()).map(|degraded| text(degraded.since)),
        total_reconciles: leads.then_some(status.passes),
        total_failed: leads.then_some(status.failures),
        resource_count: status.instances,
        ready_count: ready_count(operator, &status),
        gated: leads.then_some(status.gated),
        has_unhealthy_dependencies: status.has_unhealthy_dependencies(),
        last_error: status.last_error.clone(),
        last_reconcile: status.last_pass.map(text),
        problems: problems(&status),
    };
    (code, Json(page)).into_response()
}
