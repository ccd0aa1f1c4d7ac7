//! What the tasks of one operator share.
//!
//! ```text
//!  bound_plan   the plan with its watches        instances       custom resources, and memory between passes
//!  passes       counters, health, meter          capacity        workers and queue depth, declared or autoscaled
//!  uniques      values that must be unique       orphaned        deleted custom resources that left children
//!  standby      changes while another leads      status_writes   whether the API server takes the status
//!  waiting      why children are not ready       inherited       what the predecessor of the operator wrote
//! ```

mod belonging;
pub(crate) mod bound_plan;
pub(crate) mod capacity;
mod inherited;
mod instances;
pub(crate) mod memory;
mod meter;
pub(crate) mod orphaned;
pub(crate) mod passes;
mod standby;
mod status_writes;
mod uniques;
mod waiting;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use arc_swap::ArcSwapOption;
use orkestra_cluster::client::flow::Share;
use orkestra_engine::reconcile::{autoscale::AutoscaleMetrics, record::Uid, sources::Answer};
use orkestra_language::reasons::KatalogReason;
use orkestra_object::value::Path;
use orkestra_plan::{ObjectKey, OperatorPlan, Plans, Revised};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use self::{
    bound_plan::BoundPlan,
    capacity::OperatorCapacity,
    instances::OperatorInstances,
    orphaned::Orphaned,
    passes::{Failed, Passes},
    standby::RecentChanges,
    status_writes::StatusWrites,
    uniques::Uniques,
};
use crate::{
    context::{Context, operators::Live},
    metrics::OperatorMetrics,
    queue::{Lane, WorkQueue},
    requests::Requests,
    sources::OperatorSources,
    status::{
        OperatorProblem, Phase, Role,
        health::{HealthChange, Measure},
    },
};

/// The shared state of the tasks of one operator.
pub(crate) struct Shared {
    pub(crate) context: Arc<Context>,
    /// The running and the wanted plan. Only the driver sets the running one.
    pub(crate) plans: watch::Sender<Plans>,
    pub(crate) role: Role,
    pub(crate) metrics: OperatorMetrics,
    pub(crate) requests: Requests,
    pub(crate) queue: WorkQueue<ObjectKey>,
    /// What passes read beside custom resources and their children.
    pub(crate) sources: OperatorSources,
    /// The plan with its watches; none while the operator waits for its CRD.
    pub(crate) bound: ArcSwapOption<BoundPlan>,
    /// Whether `bound` lacks a permission for children, and processes deletions only.
    pub(crate) ends_only: AtomicBool,
    /// Whether its Katalog is suspended: it processes deletions only.
    pub(crate) suspended: AtomicBool,
    /// Wakes the driver: the set of kinds to watch may have changed.
    pub(crate) rebind: Notify,
    /// Wakes the publisher: the operator's status may have changed.
    pub(crate) changed: Arc<Notify>,
    pub(crate) passes: Passes,
    pub(crate) capacity: OperatorCapacity,
    pub(crate) life: Mutex<Life>,
    pub(crate) instances: OperatorInstances,
    /// The values that `unique` compares.
    pub(crate) uniques: Uniques,
    /// Deleted custom resources that left children.
    orphaned: Mutex<Orphaned>,
    status_writes: StatusWrites,
    /// Recent changes, while another process leads; none while this one works.
    recent: Mutex<Option<RecentChanges>>,
}

/// The state of an operator.
#[derive(Clone, Default)]
pub(crate) struct Life {
    pub(crate) phase: Phase,
    /// When its workers started.
    pub(crate) started_at: Option<jiff::Timestamp>,
    /// The dependencies (`dependsOn`) that are not ready.
    pub(crate) waits_for: Option<String>,
    /// Bound, but not in force yet.
    pub(crate) pending: Option<Arc<BoundPlan>>,
    /// Why the wanted plan cannot even be bound.
    pub(crate) obstacle: Option<OperatorProblem>,
}

impl Shared {
    pub(crate) fn new(
        context: Arc<Context>,
        role: Role,
        metrics: OperatorMetrics,
        queue: WorkQueue<ObjectKey>,
        wanted: Revised,
    ) -> Self {
        let share = wanted.plan.full_name();
        let changed = Arc::new(Notify::new());
        let client = context.external.of_operator(&share);
        let cluster = context.cluster.on_account_of(Share::new(share)).in_part();
        Self {
            requests: Requests::new(cluster, changed.clone()),
            sources: OperatorSources::new(&context, client, &queue),
            context,
            plans: watch::Sender::new(Plans::new(wanted)),
            role,
            metrics,
            queue,
            bound: ArcSwapOption::empty(),
            ends_only: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            rebind: Notify::new(),
            changed,
            passes: Passes::default(),
            capacity: OperatorCapacity::default(),
            life: Mutex::default(),
            instances: OperatorInstances::default(),
            uniques: Uniques::default(),
            orphaned: Mutex::default(),
            status_writes: StatusWrites::default(),
            recent: Mutex::default(),
        }
    }

    /// Suspends or resumes the passes over custom resources that are not being deleted. On resumption all are queued.
    pub(crate) fn suspend(&self, suspended: bool) {
        if self.suspended.swap(suspended, Ordering::AcqRel) == suspended {
            return;
        }
        self.changed.notify_one();
        let Some(bound) = self.bound.load_full().filter(|_| !suspended) else {
            return;
        };
        for key in bound
            .cr_keys()
            .into_iter()
            .chain(bound.all_formerly_managed())
        {
            self.enqueue(key, Lane::Changed);
        }
        self.notice_orphans(&bound);
    }

    /// Records that a custom resource has the status that the plan of that hash writes.
    pub(crate) fn status_accepted(&self, plan: &str) {
        if self.status_writes.accept(plan) {
            self.changed.notify_one();
        }
    }

    /// Records why a status of the plan of that hash is not written.
    pub(crate) fn status_refused(&self, plan: &str, why: String) {
        if self.status_writes.refuse(plan, why) {
            self.changed.notify_one();
        }
    }

    /// Returns the problems of the requests that passes made.
    pub(crate) fn problems(&self) -> Vec<OperatorProblem> {
        let refusals = self.requests.refusals().into_iter();
        let mut problems: Vec<OperatorProblem> = refusals
            .map(|message| OperatorProblem {
                reason: KatalogReason::Forbidden,
                message,
            })
            .collect();
        if let Some(message) = self.status_writes.problem() {
            problems.push(OperatorProblem {
                reason: KatalogReason::StatusNotWritable,
                message,
            });
        }
        problems
    }

    pub(crate) fn set_phase(&self, phase: Phase) {
        let mut life = self.life.lock();
        life.phase = phase;
        match phase {
            Phase::Running | Phase::Deleting => {
                life.started_at
                    .get_or_insert_with(|| self.context.clock.now());
            }
            Phase::Waiting | Phase::Starting | Phase::Standby => life.started_at = None,
        }
        self.changed.notify_one();
    }

    /// Sets the plan that is bound but not in force yet, and why the wanted plan cannot be bound.
    pub(crate) fn set_pending(
        &self,
        pending: Option<Arc<BoundPlan>>,
        obstacle: Option<OperatorProblem>,
    ) {
        let mut life = self.life.lock();
        (life.pending, life.obstacle) = (pending, obstacle);
        drop(life);
        self.changed.notify_one();
    }

    /// Returns the effective plan of the operator: the running one, or the wanted one if none runs.
    pub(crate) fn plan(&self) -> Arc<OperatorPlan> {
        self.plans.borrow().effective().plan.clone()
    }

    /// Holds the queue while a dependency is not ready, and publishes which; or releases it.
    pub(crate) fn wait_for(&self, waits_for: Option<String>) {
        self.queue.hold(waits_for.is_some());
        let mut life = self.life.lock();
        if life.waits_for != waits_for {
            life.waits_for = waits_for;
            self.changed.notify_one();
        }
    }

    /// Queues the custom resources whose `unique` result changed because `key` changed.
    pub(crate) fn compare_anew(&self, key: &ObjectKey) {
        if let Some(bound) = self.bound.load_full() {
            for other in self.uniques.refresh(&bound, key) {
                self.enqueue(other, Lane::Changed);
            }
        }
    }

    /// Queues a custom resource for a pass; an operator that yields runs none.
    pub(crate) fn enqueue(&self, key: ObjectKey, lane: Lane) {
        if self.role == Role::Reconciles && !self.remembers(&key, lane) {
            self.queue.add(key, lane);
        }
    }

    /// Returns its current metrics.
    pub(crate) fn figures(&self) -> AutoscaleMetrics {
        let recent = self.passes.recent();
        let workers = self.capacity.workers();
        let whole = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        // Surplus workers that finish their last pass are not counted beyond the total.
        let busy = self.queue.busy().min(workers);
        AutoscaleMetrics {
            queue_depth: whole(self.queue.depth()),
            workers: whole(workers),
            autoscale_active: self.capacity.is_scaled(),
            workers_busy_percent: whole((busy * 100).checked_div(workers).unwrap_or(0)),
            reconcile_duration_p95_ms: u64::try_from(recent.p95.as_millis()).unwrap_or(u64::MAX),
            error_rate_percent: recent.error_percent,
        }
    }

    /// Removes the state of a deleted custom resource.
    pub(crate) fn forget_resource(&self, uid: &Uid, key: &ObjectKey) {
        self.instances.remove(uid, key);
        self.sources.forget(key);
        self.queue.remove(key);
        self.forget_recent(key);
        let Some(bound) = self.bound.load_full() else {
            return;
        };
        let change = self.passes.forget(key, self.measure());
        self.report_health(&bound.plan, change);
    }

    /// Returns the current measure for the operator's passes.
    fn measure(&self) -> Measure {
        Measure {
            threshold: self.plan().queue.failure_threshold,
            instances: self.instances.count(),
            namespaces: self.instances.namespace_count(),
            now: self.context.clock.now(),
        }
    }

    /// Logs that the operator became degraded, or recovered.
    fn report_health(&self, plan: &OperatorPlan, change: Option<HealthChange>) {
        let (katalog, operator) = (&plan.katalog, &plan.name);
        match change {
            None => return,
            Some(HealthChange::Degraded) => {
                let (_, degraded) = self.passes.health();
                let why = degraded.map(|degraded| degraded.message);
                tracing::warn!(%katalog, operator, error = why, "operator is degraded");
            }
            Some(HealthChange::Recovered) => {
                tracing::info!(%katalog, operator, "operator has recovered");
            }
        }
        self.changed.notify_one();
    }

    /// Removes the state of all custom resources, since the CRD is gone.
    pub(crate) fn clear(&self) {
        for key in self.instances.drain() {
            self.sources.read(&key, []);
            self.sources.scalers.settle(&key, &[]);
        }
        self.instances.forget_all();
        self.sources.calls.clear();
        self.passes.clear();
    }

    /// Counts a pass over a custom resource; `is_known` says whether it still exists, `is_retried` whether it is retried with
    /// backoff.
    pub(crate) fn passed(
        &self,
        plan: &OperatorPlan,
        key: &ObjectKey,
        (is_known, is_retried): (bool, bool),
        failed: Option<Failed>,
    ) {
        let measure = self.measure();
        let change = self
            .passes
            .count(key, (is_known, is_retried), failed, measure);
        self.report_health(plan, change);
    }
}

impl Live for Shared {
    fn figures(&self) -> AutoscaleMetrics {
        Self::figures(self)
    }

    fn owns(&self, uid: &Uid) -> bool {
        self.instances.owner(uid).is_some()
    }

    fn holder(&self, key: &ObjectKey, path: &Path, text: &str) -> Option<Answer> {
        let bound = self.bound.load_full()?;
        let is_indexed = bound.plan.reads.unique.contains(path) && bound.crs.readable().is_ok();
        is_indexed.then(|| self.uniques.answer(key, path, text))
    }
}
