//! Publishes the status of an operator when something changed, at most a few times per second.

use std::{sync::atomic::Ordering, time::Duration};

use orkestra_cluster::watch::{WatchProblem, WatchState};
use orkestra_engine::reconcile::status::unwritable;
use orkestra_language::reasons::KatalogReason;
use orkestra_plan::{OperatorPlan, Plans};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::Measured,
    operator::permissions::{self, MissingPermissions},
    shared::{Life, Shared, bound_plan::BoundPlan},
    status::{OperatorProblem, OperatorStatus, Phase, Role},
};

/// Changes within this period are published together.
const COALESCE: Duration = Duration::from_millis(200);
/// The same while the operator starts: its Katalog records the kind once the caches are filled, and no pass runs before.
const COALESCE_START: Duration = Duration::from_millis(5);

/// Publishes the operator's status until `stop` is cancelled.
pub(crate) async fn publish(
    shared: &Shared,
    plans: &mut watch::Receiver<Plans>,
    status: &watch::Sender<OperatorStatus>,
    stop: &CancellationToken,
) {
    let mut refused_events = shared.context.events.problems();
    let mut missing = MissingPermissions::default();
    loop {
        let sources_changed = shared.sources.changed();
        let (now, review_at) = tokio::select! {
            () = stop.cancelled() => return,
            observed = observe(shared, plans, &mut missing) => observed,
        };
        let coalesce = publish_now(shared, now, status);
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep_until(review_at.unwrap_or_else(Instant::now)), if review_at.is_some() => {}
            () = shared.changed.notified() => {}
            () = sources_changed => {}
            Ok(()) = refused_events.changed() => {}
            // Rare, and awaited by others: published without delay.
            Ok(()) = plans.changed() => continue,
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(coalesce) => {}
        }
    }
}

/// Returns the present status, with all rules that the wanted plan needs and that are missing if one is refused; and when to
/// review them again.
async fn observe(
    shared: &Shared,
    plans: &mut watch::Receiver<Plans>,
    missing: &mut MissingPermissions,
) -> (OperatorStatus, Option<Instant>) {
    // Read first: the rest of the status never belongs to an earlier plan than this one.
    let mut now = gather(shared, plans.borrow_and_update().clone());
    let is_refused = (now.all_problems()).any(|problem| problem.reason == KatalogReason::Forbidden);
    let plan = plans.borrow().wanted().plan.clone();
    let mut review_at = None;
    if is_refused {
        if missing.next(&plan).is_none() {
            let remedy = permissions::remedy(&plan, shared.context.logs_writes);
            let found = permissions::review(&shared.requests.cluster, &plan, &remedy).await;
            missing.note(&plan, found);
            // It may have changed meanwhile.
            now = gather(shared, plans.borrow_and_update().clone());
        }
        review_at = missing.next(&plan);
    } else {
        missing.forget();
    }
    missing.complete(&mut now.problems);
    missing.complete(&mut now.pending);
    now.problems.extend(events_problem(shared));
    (now, review_at)
}

/// Publishes the status `now`; returns for how long changes are gathered from now on.
fn publish_now(
    shared: &Shared,
    now: OperatorStatus,
    status: &watch::Sender<OperatorStatus>,
) -> Duration {
    set_gauges(shared, &now);
    let coalesce = match now.phase {
        Phase::Waiting | Phase::Starting => COALESCE_START,
        Phase::Standby | Phase::Running | Phase::Deleting => COALESCE,
    };
    status.send_if_modified(|before| {
        let differs = *before != now;
        *before = now;
        differs
    });
    coalesce
}

impl Measured for Shared {
    /// Sets the gauges of values that grow without a notification, such as a queue's age, or change too often to publish each
    /// time.
    fn measure(&self) {
        let queue = &self.queue;
        (self.metrics).set_queue(queue.depth(), queue.oldest(), queue.delayed());
        let bound = self.bound.load();
        let held = bound.as_ref().map(|bound| bound.held()).unwrap_or_default();
        self.metrics.set_cache(held.records, held.bytes);
    }
}

fn set_gauges(shared: &Shared, status: &OperatorStatus) {
    shared.metrics.set_resources(status.instances);
    (shared.metrics).set_readiness(status.ready, &status.not_ready);
    shared.metrics.set_broken(status.rollout.broken());
    shared.metrics.set_queue_max_depth(status.queue_max_depth);
    shared.metrics.set_workers(status.workers);
    shared.metrics.set_degraded(status.degraded.is_some());
}

fn gather(shared: &Shared, plans: Plans) -> OperatorStatus {
    let plan = &plans.effective().plan;
    let bound = shared.bound.load_full();
    let life = shared.life.lock().clone();
    let tally = shared.passes.counters();
    let (consecutive_failures, degraded) = shared.passes.health();
    let waits = life.waits_for.is_some() && life.phase == Phase::Running;
    let (pace, workers) = (shared.capacity.pace(plan), shared.capacity.workers());
    let counts = shared.instances.counts(plan.queue.failing_percent);
    OperatorStatus {
        phase: if waits { Phase::Waiting } else { life.phase },
        problems: problems(shared, plan, bound.as_deref(), &life),
        remark: bound.as_deref().and_then(remark),
        pending: pending(shared, &plans, bound.as_deref(), &life),
        is_blocked: is_blocked(shared, &plans, &life),
        instances: bound.as_ref().map_or(0, |bound| bound.cr_keys().len()),
        workers,
        steady_workers: workers.min(pace.workers.least),
        autoscaled: shared.capacity.is_scaled(),
        queue_max_depth: pace.max_depth,
        ready: counts.ready,
        not_ready: counts.not_ready,
        gated: counts.gated,
        rollout: counts.rollout,
        passes: tally.passes,
        failures: tally.failures,
        own_failures: tally.own_failures,
        consecutive_failures,
        degraded,
        last_error: tally.last_error,
        last_pass: tally.last_pass,
        started_at: life.started_at.filter(|_| !waits || tally.passes > 0),
        // A follower has no work due.
        queue_depth: match life.phase {
            Phase::Standby => 0,
            _ => shared.queue.depth(),
        },
        suspended: shared.suspended.load(Ordering::Acquire),
        yields_to: match &shared.role {
            Role::Reconciles => None,
            Role::Yields(to) => Some(to.clone()),
        },
        plans: Some(plans),
    }
}

/// Returns what the wanted plan waits for while another one runs.
fn pending(
    shared: &Shared,
    plans: &Plans,
    bound: Option<&BoundPlan>,
    life: &Life,
) -> Vec<OperatorProblem> {
    let is_up = shared
        .context
        .cluster
        .reach()
        .view()
        .borrow()
        .away
        .is_none();
    if bound.is_none() || plans.is_current() || !is_up {
        return Vec::new();
    }
    let mut problems: Vec<OperatorProblem> = life.obstacle.iter().cloned().collect();
    if let Some(next) = &life.pending {
        problems.extend(unavailable(next));
    }
    problems
}

/// True if no plan runs, and the wanted one cannot before a permission is granted or a CRD is applied. What an operator
/// reports while its caches fill, such as a kind of an earlier revision that it cannot read, does not block it.
fn is_blocked(shared: &Shared, plans: &Plans, life: &Life) -> bool {
    if plans.running().is_some() {
        return false;
    }
    let lasts = |problem: &OperatorProblem| problem.reason != KatalogReason::Unavailable;
    let waits = life.phase == Phase::Waiting;
    let missing = waits.then(|| missing_crd(shared, &plans.wanted().plan));
    missing.flatten().as_ref().is_some_and(lasts)
        || life.obstacle.as_ref().is_some_and(lasts)
        || (life.pending.as_deref()).is_some_and(BoundPlan::lacks_permissions)
}

/// Returns the problems, most severe first: those that prevent running at all, then permissions, then features it runs
/// without.
fn problems(
    shared: &Shared,
    plan: &OperatorPlan,
    running: Option<&BoundPlan>,
    life: &Life,
) -> Vec<OperatorProblem> {
    let bound = running.or(life.pending.as_deref());
    let mut problems = Vec::new();
    let away = shared.context.cluster.reach().view().borrow().away.clone();
    if let Some(away) = away {
        // All other read failures have the same cause.
        return vec![OperatorProblem {
            reason: KatalogReason::Unavailable,
            message: away.message(),
        }];
    }
    if life.phase == Phase::Waiting {
        problems.extend(missing_crd(shared, plan));
    }
    if let Some(message) = &life.waits_for {
        problems.push(OperatorProblem {
            reason: KatalogReason::DependencyNotReady,
            message: message.clone(),
        });
    }
    if running.is_none() {
        problems.extend(life.obstacle.clone());
    }
    if let Some(bound) = bound {
        problems.extend(unavailable(bound));
        let started = shared.sources.problems().into_iter();
        problems.extend(started.map(|(kind, problem)| unwatched(kind, problem)));
    }
    problems.extend(shared.problems());
    problems.extend(bound.and_then(lost_status));
    problems
}

/// Returns why Events are refused; not while the API server is unreachable.
fn events_problem(shared: &Shared) -> Option<OperatorProblem> {
    shared.context.cluster.reach().is_up().then_some(())?;
    Some(OperatorProblem {
        reason: KatalogReason::Forbidden,
        message: shared.context.events.problem()?,
    })
}

/// Returns the plan's needs that the cluster does not provide.
fn unavailable(bound: &BoundPlan) -> Vec<OperatorProblem> {
    let watches = bound.problems().into_iter();
    let mut problems: Vec<_> = watches
        .map(|(kind, problem)| unwatched(kind, problem))
        .collect();
    let not_served = |message| OperatorProblem {
        reason: KatalogReason::KindNotServed,
        message,
    };
    for kind in bound.sources.observed.absent() {
        problems.push(not_served(format!(
            "the API server does not serve {kind}, which `observe` watches: install its CRD"
        )));
    }
    for kind in bound.absent.keys().filter(|kind| bound.declares(kind)) {
        problems.push(not_served(format!(
            "the API server does not serve {kind}, which the Katalog declares: install its CRD"
        )));
    }
    problems
}

/// Returns which kinds cannot be read that only earlier revisions declared: their children are not deleted meanwhile. This does not
/// make the operator less healthy, since the plan does not need these kinds.
fn remark(bound: &BoundPlan) -> Option<String> {
    let mut earlier = bound.earlier_problems().into_iter();
    let (kind, problem) = earlier.next()?;
    let more = match earlier.len() {
        0 => String::new(),
        more => format!(" (and {more} more kinds)"),
    };
    let why = unwatched(&kind, problem).message;
    Some(format!(
        "children of kind {kind}{more}, which only an earlier revision declares, cannot be read and are not deleted: {why}"
    ))
}

fn unwatched(kind: impl std::fmt::Display, problem: WatchProblem) -> OperatorProblem {
    match problem {
        WatchProblem::NotServed => OperatorProblem {
            reason: KatalogReason::KindNotServed,
            message: format!("the API server does not serve {kind}"),
        },
        WatchProblem::Forbidden { message } => OperatorProblem {
            reason: KatalogReason::Forbidden,
            message,
        },
        WatchProblem::Unavailable {
            message,
            is_lasting: true,
        } => OperatorProblem {
            reason: KatalogReason::KindNotServed,
            message: format!(
                "the API server has not answered for {kind} for more than a minute: {message}"
            ),
        },
        WatchProblem::Unavailable { message, .. } => OperatorProblem {
            reason: KatalogReason::Unavailable,
            message,
        },
    }
}

/// Why the operator has no CRD to run; none while CRDs are still being listed, so that nothing follows from one not seen yet.
fn missing_crd(shared: &Shared, plan: &OperatorPlan) -> Option<OperatorProblem> {
    let (group_kind, version) = (plan.resource.group_kind(), &plan.resource.version);
    match &*shared.context.crds.state().borrow() {
        WatchState::Starting => return None,
        WatchState::Failing { problem, .. } => {
            let crds = "CustomResourceDefinition.apiextensions.k8s.io";
            return Some(unwatched(crds, problem.clone()));
        }
        WatchState::Synced => {}
    }
    let message = match shared.context.crds.get(&group_kind) {
        None => format!("no CRD defines {group_kind}: apply it, and the operator starts"),
        Some(crd) if crd.version(version).is_none_or(|version| !version.served) => {
            format!("the CRD of {group_kind} does not serve version {version}")
        }
        Some(_) => format!("the CRD of {group_kind} is not established yet"),
    };
    Some(OperatorProblem {
        reason: KatalogReason::CrdMissing,
        message,
    })
}

/// Returns a problem if the plan declares status fields that the CRD cannot hold.
fn lost_status(bound: &BoundPlan) -> Option<OperatorProblem> {
    let lost = unwritable(&bound.plan, &bound.crd_status);
    if lost.is_empty() {
        return None;
    }
    let fields = lost
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ");
    let why = if bound.crd_status.has_status {
        "its schema drops"
    } else {
        "it has no status subresource, so these fields are not written:"
    };
    let message = format!(
        "the CRD of {} cannot hold the whole status: {why} {fields}",
        bound.served().group_kind()
    );
    Some(OperatorProblem {
        reason: KatalogReason::StatusNotWritable,
        message,
    })
}
