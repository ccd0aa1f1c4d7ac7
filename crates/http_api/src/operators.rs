//! The state of operators. Everything comes from plans and from the reported status of operators.
//!
//! One file: each page shows the same rows.

use std::collections::BTreeMap;

use orkestra_cluster::reach::View;
use orkestra_language::{
    api::{DependencyCondition, duration},
    reasons::KatalogReason,
};
use orkestra_plan::{AutoscalePlan, OperatorPlan, Plans, Revised};

use super::{
    address::long_path,
    answers::{
        ApiServer, Autoscaler, Capacity, Endpoints, Gvk, Gvr, Katalog, Operator, OperatorRow,
        Problem, Queue, Rates, SourceRow, StateWord, Summary, Webhooks, Workers,
    },
    error::cut,
};
use orkestra_cluster::leader_election::Leadership;
use orkestra_controller::{KatalogInfo, KatalogView, OperatorView, SourceView};
use orkestra_operator::{
    OperatorStatus,
    health::OperatorState,
    metrics::{Metrics, WebhookMetrics},
};

/// The longest text of a row, in characters: a summary of many operators stays small.
const LONGEST_TEXT: usize = 1024;

/// The state of an operator; one whose kind another Katalog has claimed never starts. If another process leads, its report is
/// used.
pub(crate) fn state_of(operator: &OperatorView, status: &OperatorStatus) -> OperatorState {
    if let Some(row) = &operator.reported {
        OperatorState::reported(row)
    } else if operator.conflict.is_some() {
        OperatorState::Pending
    } else {
        OperatorState::of(status)
    }
}

impl From<OperatorState> for StateWord {
    fn from(state: OperatorState) -> Self {
        match state {
            OperatorState::Pending => Self::Pending,
            OperatorState::Standby => Self::Standby,
            OperatorState::Started => Self::Started,
            OperatorState::Healthy => Self::Healthy,
            OperatorState::Degraded => Self::Degraded,
        }
    }
}

/// `/katalog`.
pub(crate) fn summary(
    katalogs: &[KatalogView],
    ready: bool,
    leadership: &Leadership,
    reach: &View,
) -> Summary {
    let standing = leadership.standing();
    let crds: Vec<OperatorRow> = katalogs
        .iter()
        .flat_map(|katalog| {
            let operators = katalog.operators.iter();
            operators.map(|operator| row(katalogs, katalog, operator))
        })
        .collect();
    let count = |state: OperatorState| {
        let word = StateWord::from(state);
        crds.iter().filter(|row| row.state == word).count()
    };
    let degraded = count(OperatorState::Degraded);
    let disabled: usize = katalogs.iter().map(|katalog| katalog.disabled.len()).sum();
    let mut first = crds.iter().filter(|row| row.state == StateWord::Degraded);
    let name = |katalog: &KatalogView| katalog.reference.name.clone();
    let of_only =
        |text: fn(&KatalogInfo) -> &String| only(katalogs).map(|one| text(&one.about).clone());
    Summary {
        healthy: degraded == 0,
        ork_ready: ready,
        api_server: api_server(reach),
        status: if degraded == 0 { 200 } else { 503 },
        degraded_reason: first
            .next()
            .map(|row| format!("{}: {}", row.name, row.reason.as_deref().unwrap_or(""))),
        total: crds.len() + disabled,
        total_enabled: crds.len(),
        total_degraded: degraded,
        status_counts: (OperatorState::ALL.iter())
            .map(|state| (state.word(), count(*state)))
            .collect(),
        namespaces: namespaces(katalogs),
        is_konductor: standing.leads,
        identity: leadership.identity().to_string(),
        leader: standing.leader.as_deref().map(str::to_owned),
        election_problem: standing.problem.as_deref().map(str::to_owned),
        runtime_version: orkestra_ground::VERSION,
        katalogs: katalogs.iter().map(about).collect(),
        name: only(katalogs).map(name),
        description: of_only(|about| &about.description),
        version: of_only(|about| &about.version),
        author: of_only(|about| &about.author),
        license: of_only(|about| &about.license),
        crds,
    }
}

/// Returns the Katalog if there is exactly one, for the summary's fields about it.
fn only(katalogs: &[KatalogView]) -> Option<&KatalogView> {
    match katalogs {
        [only] => Some(only),
        _ => None,
    }
}

/// Entries by the namespace of their Katalog.
fn namespaces(katalogs: &[KatalogView]) -> BTreeMap<String, Vec<String>> {
    let mut namespaces: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for katalog in katalogs {
        let operators = katalog.operators.iter();
        let entries = operators.map(|operator| operator.name().to_owned());
        let namespace = namespaces.entry(katalog.reference.namespace.clone());
        namespace.or_default().extend(entries);
    }
    namespaces
}

/// The reachability of the API server; if it is unreachable, for how long and why.
fn api_server(reach: &View) -> ApiServer {
    let away = reach.away.as_ref();
    ApiServer {
        reachable: away.is_none(),
        away_seconds: away.map(|away| away.since.elapsed().as_secs()),
        reason: away.map(|away| away.why.clone()),
    }
}

fn about(katalog: &KatalogView) -> Katalog {
    Katalog {
        kind: katalog.kind.kind(),
        namespace: katalog.reference.namespace.clone(),
        name: katalog.reference.name.clone(),
        description: katalog.about.description.clone(),
        version: katalog.about.version.clone(),
        author: katalog.about.author.clone(),
        license: katalog.about.license.clone(),
        ready: katalog.ready.status,
        reason: katalog.ready.reason.to_string(),
        message: cut(&katalog.ready.message, LONGEST_TEXT),
        revision: katalog.revision.clone(),
        disabled: katalog.disabled.clone(),
        sources: katalog.sources.iter().map(source).collect(),
    }
}

fn source(view: &SourceView) -> SourceRow {
    let SourceView { status, operators } = view;
    let message = cut(&status.message, LONGEST_TEXT);
    SourceRow {
        source: status.source.clone(),
        url: status.url.clone(),
        revision: status.revision.clone(),
        digest: status.digest.clone(),
        verified: status.verified.clone(),
        message: (!message.is_empty()).then_some(message),
        operators: operators.clone(),
    }
}

fn row(katalogs: &[KatalogView], katalog: &KatalogView, operator: &OperatorView) -> OperatorRow {
    let status = operator.status.borrow();
    let state = state_of(operator, &status);
    let plan = operator.plan(&status);
    OperatorRow {
        name: plan.name.clone(),
        namespace: katalog.reference.namespace.clone(),
        katalog: katalog.reference.name.clone(),
        declared_by: katalog.kind.kind(),
        source: katalog.source_of(&plan.name).map(str::to_owned),
        path: long_path(katalogs, katalog, &plan.name),
        gvk: gvk(plan),
        state: state.into(),
        healthy: state.is_well(),
        reason: reason(operator, &status).map(|reason| cut(&reason, LONGEST_TEXT)),
        workers: workers(operator, &status),
        queue_depth: status.queue_depth,
        resource_count: status.instances,
        ready_count: ready_count(operator, &status),
        enabled: true,
    }
}

/// Running workers, here or in the leading process.
fn workers(operator: &OperatorView, status: &OperatorStatus) -> usize {
    let reported = operator.reported.as_ref();
    reported.map_or(status.workers, |row| count(row.workers))
}

/// Ready custom resources, as reported by the process that reconciles them.
pub(crate) fn ready_count(operator: &OperatorView, status: &OperatorStatus) -> usize {
    let reported = operator.reported.as_ref();
    reported.map_or(status.ready, |row| count(row.ready))
}

/// Converts a number of a Katalog's status, which may have any value.
fn count(number: impl TryInto<usize>) -> usize {
    number.try_into().unwrap_or(0)
}

/// Returns why the operator is not healthy, the most severe problem first; `None` if no problem is known.
pub(crate) fn reason(operator: &OperatorView, status: &OperatorStatus) -> Option<String> {
    if let Some(row) = &operator.reported {
        let parts = [row.reason.as_str(), &row.message];
        let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        return (!said.is_empty()).then(|| said.join(": "));
    }
    if let Some(holder) = &operator.conflict {
        return Some(format!("Katalog {holder} holds this kind"));
    }
    if let Some(problem) = status.all_problems().next() {
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

fn gvk(plan: &OperatorPlan) -> Gvk {
    Gvk {
        group: plan.resource.group.to_string(),
        version: plan.resource.version.to_string(),
        kind: plan.resource.kind.to_string(),
    }
}

/// Returns the revision that runs, and the wanted one if it differs.
fn revisions(operator: &OperatorView, status: &OperatorStatus) -> (Option<String>, Option<String>) {
    if let Some(row) = &operator.reported {
        return (row.revision.clone(), row.wanted_revision.clone());
    }
    let name = |revised: &Revised| revised.revision.to_string();
    let wanted = &operator.wanted;
    match status.plans.as_ref().and_then(Plans::running) {
        Some(running) if running == wanted => (Some(name(wanted)), None),
        running => (running.map(name), Some(name(wanted))),
    }
}

/// `/katalog/{…}/{entry}`.
// Over 60 lines: a table, one line for each field of the response.
pub(crate) fn operator(
    katalogs: &[KatalogView],
    katalog: &KatalogView,
    operator: &OperatorView,
    leads: bool,
    metrics: &Metrics,
) -> Operator {
    let status = operator.status.borrow();
    let state = state_of(operator, &status);
    let plan = operator.plan(&status);
    let (revision, wanted_revision) = revisions(operator, &status);
    let path = long_path(katalogs, katalog, &plan.name);
    let rate = status.error_rate();
    let success = if status.passes == 0 { 0.0 } else { 1.0 - rate };
    Operator {
        name: plan.name.clone(),
        namespace: katalog.reference.namespace.clone(),
        katalog: katalog.reference.name.clone(),
        declared_by: katalog.kind.kind(),
        source: katalog.source_of(&plan.name).map(str::to_owned),
        endpoints: Endpoints {
            health: format!("{path}/health"),
            cr: format!("{path}/cr"),
        },
        path,
        gvk: gvk(plan),
        gvr: Gvr {
            group: plan.resource.group.to_string(),
            version: plan.resource.version.to_string(),
            resource: plan.resource.plural.as_deref().map(str::to_owned),
        },
        scope: (plan.resource.namespaced)
            .map(|namespaced| if namespaced { "Namespaced" } else { "Cluster" }),
        mode: "dynamic",
        state: state.into(),
        healthy: state.is_well(),
        reason: reason(operator, &status),
        revision,
        wanted_revision,
        workers: all_workers(plan, workers(operator, &status), status.autoscaled),
        autoscaler: plan
            .autoscale
            .as_ref()
            .map(|scale| autoscaler(scale, &status)),
        resync: duration::format(plan.resync),
        queue: queue(plan, &status),
        queue_depth: status.queue_depth,
        resource_count: status.instances,
        ready_count: ready_count(operator, &status),
        enabled: true,
        depends_on: depends_on(plan),
        finalizer: plan.finalizer,
        children: child_kinds(plan),
        yields_to: status.yields_to.clone(),
        conflicts_with: operator.conflict.clone(),
        problems: problems(&status),
        metrics: Rates {
            workers: workers(operator, &status),
            queue_depth: status.queue_depth,
            error_rate: leads.then_some(rate),
            success_rate: leads.then_some(success),
        },
        webhooks: webhooks(metrics, katalog, &plan.name),
    }
}

/// Returns the figures of the operator's webhooks, if they were called.
fn webhooks(metrics: &Metrics, katalog: &KatalogView, entry: &str) -> Option<Webhooks> {
    let figures = WebhookMetrics::new(metrics).figures(&katalog.reference, entry)?;
    let milliseconds = |took: std::time::Duration| took.as_secs_f64() * 1000.0;
    Some(Webhooks {
        validations: figures.validations,
        denials: figures.denials,
        mutations: figures.mutations,
        conversions: figures.conversions,
        conversion_failures: figures.conversion_failures,
        average_milliseconds: milliseconds(figures.average),
        p95_milliseconds: milliseconds(figures.p95),
    })
}

fn all_workers(plan: &OperatorPlan, current: usize, autoscaled: bool) -> Workers {
    Workers {
        current,
        configured: plan.workers,
        most: plan.most_workers,
        source: if autoscaled {
            "autoscaler"
        } else if plan.most_workers > plan.workers {
            "default"
        } else {
            "configured"
        },
    }
}

fn queue(plan: &OperatorPlan, status: &OperatorStatus) -> Queue {
    Queue {
        depth: status.queue_depth,
        max_depth: status.queue_max_depth,
        failure_threshold: plan.queue.failure_threshold,
    }
}

fn autoscaler(plan: &AutoscalePlan, status: &OperatorStatus) -> Autoscaler {
    let capacity = &plan.capacity;
    Autoscaler {
        active: status.autoscaled,
        interval: duration::format(plan.interval),
        cooldown: duration::format(plan.cooldown),
        capacity: Capacity {
            workers: capacity.workers,
            queue_depth: capacity.queue_depth,
            resync: capacity.resync.map(duration::format),
        },
    }
}

fn depends_on(plan: &OperatorPlan) -> BTreeMap<String, &'static str> {
    let entries = plan.depends_on.iter().map(|dependency| {
        let condition = match dependency.condition {
            DependencyCondition::Started => "started",
            DependencyCondition::Healthy => "healthy",
        };
        (String::from(&*dependency.on), condition)
    });
    entries.collect()
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

pub(crate) fn problems(status: &OperatorStatus) -> Vec<Problem> {
    let problems = status.all_problems().map(|problem| Problem {
        reason: problem.reason.as_str(),
        message: problem.message.clone(),
    });
    problems.collect()
}
