//! What runs, as JSON. Everything comes from plans and from what operators say of themselves.

use std::collections::BTreeMap;

use axum::{
    Json,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use orkestra_core::{
    api::{DependencyCondition, duration},
    plan::{AutoscalePlan, OperatorPlan},
    reasons::KatalogReason,
};
use serde_json::{Value, json};

use super::address::long_path;
use crate::{
    lead::Leadership,
    meta::{KatalogView, OperatorView},
    runtime::{OperatorStatus, health::State, reach::View},
};

/// How it fares; one whose kind another Katalog holds never starts. Where another process leads, it is what that says.
fn state_of(operator: &OperatorView, status: &OperatorStatus) -> State {
    if let Some(row) = &operator.told {
        State::told(row)
    } else if operator.conflict.is_some() {
        State::Pending
    } else {
        State::of(status)
    }
}

/// Whether it is as it should be, as a probe takes it.
fn code(state: State) -> StatusCode {
    if state.is_well() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

/// `/katalog`.
pub(super) fn summary(
    katalogs: &[KatalogView],
    ready: bool,
    leadership: &Leadership,
    reach: &View,
) -> Value {
    let standing = leadership.standing();
    let rows: Vec<(State, Value)> = katalogs
        .iter()
        .flat_map(|katalog| {
            katalog
                .operators
                .iter()
                .map(|operator| row(katalog, operator))
        })
        .collect();
    let count = |state| rows.iter().filter(|(of, _)| *of == state).count();
    let degraded = count(State::Degraded);
    let enabled = rows.len();
    let disabled: usize = katalogs.iter().map(|katalog| katalog.disabled.len()).sum();
    let mut namespaces: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for katalog in katalogs {
        let entries = katalog
            .operators
            .iter()
            .map(|operator| operator.plan.name.as_str());
        namespaces
            .entry(&katalog.reference.namespace)
            .or_default()
            .extend(entries);
    }
    let first = rows
        .iter()
        .find(|(state, _)| *state == State::Degraded)
        .map(|(_, row)| row);
    let mut page = json!({
        "healthy": degraded == 0,
        "OrkReady": ready,
        "apiServer": api_server(reach),
        "status": if degraded == 0 { 200 } else { 503 },
        "degradedReason": first.map(|row| format!("{}: {}", row["name"].as_str().unwrap_or(""), row["reason"].as_str().unwrap_or(""))),
        "total": enabled + disabled,
        "totalEnabled": enabled,
        "totalDegraded": degraded,
        "statusCounts": State::ALL.iter().map(|state| (state.word(), count(*state))).collect::<BTreeMap<_, _>>(),
        "namespaces": namespaces,
        "isKonductor": standing.leads,
        "identity": &**leadership.identity(),
        "leader": standing.leader.as_deref(),
        "electionProblem": standing.problem.as_deref(),
        "runtimeVersion": crate::VERSION,
        "katalogs": katalogs.iter().map(about).collect::<Vec<_>>(),
        "crds": rows.iter().map(|(_, row)| row).collect::<Vec<_>>(),
    });
    // One Katalog speaks for the whole, as it does where there can only be one.
    if let [only] = katalogs {
        for field in ["name", "description", "version", "author", "license"] {
            page[field] = about(only)[field].clone();
        }
    }
    page
}

/// Whether the API server can be reached, and if not, for how long and why.
fn api_server(reach: &View) -> Value {
    json!({
        "reachable": reach.away.is_none(),
        "awaySeconds": reach.away.as_ref().map(|away| away.since.elapsed().as_secs()),
        "reason": reach.away.as_ref().map(|away| &away.why),
    })
}

fn about(katalog: &KatalogView) -> Value {
    json!({
        "namespace": katalog.reference.namespace,
        "name": katalog.reference.name,
        "description": katalog.about.description,
        "version": katalog.about.version,
        "author": katalog.about.author,
        "license": katalog.about.license,
        "ready": katalog.ready.status,
        "reason": katalog.ready.reason,
        "message": katalog.ready.message,
        "revision": katalog.revision,
        "disabled": katalog.disabled,
    })
}

fn row(katalog: &KatalogView, operator: &OperatorView) -> (State, Value) {
    let status = operator.status.borrow();
    let state = state_of(operator, &status);
    let plan = &operator.plan;
    let row = json!({
        "name": plan.name,
        "namespace": katalog.reference.namespace,
        "katalog": katalog.reference.name,
        "path": long_path(katalog, &plan.name),
        "gvk": gvk(plan),
        "state": state.word(),
        "healthy": state.is_well(),
        "reason": reason(operator, &status),
        "workers": workers(operator, &status),
        "queueDepth": status.queue_depth,
        "resourceCount": status.instances,
        "readyCount": ready_count(operator, &status),
        "enabled": true,
    });
    (state, row)
}

/// Workers that run, here or where the work is done.
fn workers(operator: &OperatorView, status: &OperatorStatus) -> Value {
    let told = operator.told.as_ref();
    told.map_or_else(|| status.workers.into(), |row| row.workers.into())
}

/// Custom resources that are ready, as far as those know who work.
fn ready_count(operator: &OperatorView, status: &OperatorStatus) -> Value {
    let told = operator.told.as_ref();
    told.map_or_else(|| status.ready.into(), |row| row.ready.into())
}

/// Why it is not healthy, the gravest first; none where nothing is known to be wrong.
fn reason(operator: &OperatorView, status: &OperatorStatus) -> Option<String> {
    if let Some(row) = &operator.told {
        let parts = [row.reason.as_str(), &row.message];
        let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return (!said.is_empty()).then(|| said.join(": "));
    }
    if let Some(holder) = &operator.conflict {
        return Some(format!("Katalog {holder} holds this kind"));
    }
    if let Some(problem) = status.problems.first() {
        return Some(format!("{}: {}", problem.reason, problem.message));
    }
    if let Some(entry) = &status.yields_to {
        return Some(format!("entry {entry} reconciles this kind"));
    }
    if let Some(degraded) = &status.degraded {
        return Some(format!(
            "{}: {}",
            KatalogReason::PassesFail,
            degraded.message
        ));
    }
    (status.consecutive_failures > 0).then(|| {
        let last = status.last_error.as_deref().unwrap_or("no message");
        format!(
            "{} passes in a row failed: {last}",
            status.consecutive_failures
        )
    })
}

fn gvk(plan: &OperatorPlan) -> Value {
    json!({"group": *plan.resource.group, "version": *plan.resource.version, "kind": *plan.resource.kind})
}

/// `/katalog/{…}/{entry}`.
pub(super) fn operator(katalog: &KatalogView, operator: &OperatorView, leads: bool) -> Value {
    let (state, mut page) = row(katalog, operator);
    let status = operator.status.borrow();
    let plan = &operator.plan;
    let path = long_path(katalog, &plan.name);
    let plural = plan.resource.plural.as_deref();
    let more = json!({
        "gvr": {"group": *plan.resource.group, "version": *plan.resource.version, "resource": plural},
        "scope": plan.resource.namespaced.map(|namespaced| if namespaced { "Namespaced" } else { "Cluster" }),
        "mode": "dynamic",
        "revision": katalog.revision,
        "workers": {
            "current": workers(operator, &status),
            "configured": plan.workers,
            "most": plan.most_workers,
            "source": if status.autoscaled {
                "autoscaler"
            } else if plan.most_workers > plan.workers {
                "default"
            } else {
                "configured"
            },
        },
        "autoscaler": plan.autoscale.as_ref().map(|scale| autoscaler(scale, &status)),
        "resync": duration::format(plan.resync),
        "queue": {"depth": status.queue_depth, "maxDepth": status.queue_max_depth, "failureThreshold": plan.queue.failure_threshold},
        "dependsOn": depends_on(plan),
        "finalizer": plan.finalizer,
        "children": child_kinds(plan),
        "yieldsTo": status.yields_to,
        "conflictsWith": operator.conflict,
        "problems": problems(&status),
        "metrics": {
            "workers": workers(operator, &status),
            "queueDepth": status.queue_depth,
            "errorRate": leads.then(|| error_rate(&status)),
            "successRate": leads.then(|| if status.passes == 0 { 0.0 } else { 1.0 - error_rate(&status) }),
        },
        "endpoints": {"health": format!("{path}/health"), "cr": format!("{path}/cr")},
        "healthy": state.is_well(),
    });
    if let (Value::Object(page), Value::Object(more)) = (&mut page, more) {
        page.extend(more);
    }
    page
}

fn autoscaler(plan: &AutoscalePlan, status: &OperatorStatus) -> Value {
    let capacity = &plan.capacity;
    json!({
        "active": status.autoscaled,
        "interval": duration::format(plan.interval),
        "cooldown": duration::format(plan.cooldown),
        "do": {
            "workers": capacity.workers,
            "queueDepth": capacity.queue_depth,
            "resync": capacity.resync.map(duration::format),
        },
    })
}

fn depends_on(plan: &OperatorPlan) -> Value {
    let entries = plan.depends_on.iter().map(|dependency| {
        let condition = match dependency.condition {
            DependencyCondition::Started => "started",
            DependencyCondition::Healthy => "healthy",
        };
        (String::from(&*dependency.on), Value::from(condition))
    });
    Value::Object(entries.collect())
}

fn child_kinds(plan: &OperatorPlan) -> Vec<String> {
    let mut kinds: Vec<String> = plan
        .children
        .iter()
        .map(|child| child.kind.group_kind().to_string())
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

fn problems(status: &OperatorStatus) -> Vec<Value> {
    status
        .problems
        .iter()
        .map(|problem| json!({"reason": problem.reason.as_str(), "message": problem.message}))
        .collect()
}

/// Failed passes of all, 0 to 1.
// A rate for people: 52 bits of passes are enough.
#[allow(clippy::cast_precision_loss)]
fn error_rate(status: &OperatorStatus) -> f64 {
    if status.passes == 0 {
        0.0
    } else {
        status.failures as f64 / status.passes as f64
    }
}

/// `/katalog/{…}/{entry}/health`: 200 or 503.
pub(super) fn health(
    katalog: &KatalogView,
    operator: &OperatorView,
    leads: bool,
    now: jiff::Timestamp,
) -> Response {
    let status = operator.status.borrow();
    let state = state_of(operator, &status);
    // What passes found is known where they run.
    let own = |value: Value| if leads { value } else { Value::Null };
    let uptime = status
        .started_at
        .map(|start| now.duration_since(start).as_secs().max(0));
    let page = json!({
        "name": operator.plan.name,
        "namespace": katalog.reference.namespace,
        "katalog": katalog.reference.name,
        "state": state.word(),
        "status": code(state).as_u16(),
        "isKonductor": leads,
        "healthy": state.is_well(),
        "started": own(status.started_at.is_some().into()),
        "pending": state == State::Pending,
        "reason": reason(operator, &status),
        "startedAt": status.started_at,
        "uptimeSeconds": uptime,
        "queueDepth": status.queue_depth,
        "errorRate": own(error_rate(&status).into()),
        "consecutiveFails": own(status.consecutive_failures.into()),
        "degradedSince": status.degraded.as_ref().map(|degraded| degraded.since),
        "totalReconciles": own(status.passes.into()),
        "totalFailed": own(status.failures.into()),
        "resourceCount": status.instances,
        "readyCount": ready_count(operator, &status),
        "gated": own(status.gated.into()),
        "hasUnhealthyDependencies": status.problems.iter().any(|problem| problem.reason == KatalogReason::DependencyNotReady),
        "lastError": status.last_error,
        "lastReconcile": status.last_pass,
        "problems": problems(&status),
    });
    (code(state), Json(page)).into_response()
}
