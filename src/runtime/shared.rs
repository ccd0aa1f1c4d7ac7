//! The shared state of the tasks of one operator.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use orkestra_cluster::{
    client::flow::Share,
    wire::{Served, Wire, WireError},
};
use orkestra_core::{
    plan::{CapacityPlan, ObjectKey, OperatorPlan, Plans, Revised},
    reasons::KatalogReason,
    reconcile::{autoscale::Figures, held::Held, record::Uid, sources::Read},
};
use tokio::sync::{Notify, watch};

use super::{
    Phase, Problem,
    bound::Bound,
    context::Context,
    health::{Health, Measure, Turn},
    memory::{Kept, Memory},
    meter::Meter,
    operator::Role,
    orphans::Orphaned,
    pass::Failed,
    queue::{Crew, Lane, Queue},
    sources::{Calls, objects::Objects, readers::Readers, scalers::Scalers},
    standby::Recent,
    uniques::Uniques,
};
use crate::metrics::OperatorMetrics;

/// The shared state of the tasks of one operator.
pub(super) struct Shared {
    pub(super) context: Arc<Context>,
    /// The running and the wanted plan. Only the driver sets the running one.
    pub(super) plans: watch::Sender<Plans>,
    pub(super) role: Role,
    pub(super) metrics: OperatorMetrics,
    /// Counts requests for this operator.
    pub(super) wire: Wire,
    pub(super) queue: Queue<ObjectKey>,
    /// External calls that passes wait for.
    pub(super) calls: Calls,
    /// Which custom resources read which objects beside themselves and their children.
    pub(super) readers: Arc<Readers>,
    /// The known objects of other owners.
    pub(super) objects: Objects,
    /// The autoscalers of children.
    pub(super) scalers: Scalers,
    /// The plan with its watches; none while the operator waits for its CRD.
    pub(super) bound: ArcSwapOption<Bound>,
    /// Whether `bound` lacks a permission for children, and processes deletions only.
    pub(super) ends_only: AtomicBool,
    /// Whether its Katalog is suspended: it processes deletions only.
    pub(super) suspended: AtomicBool,
    /// Wakes the driver: the set of kinds to watch may have changed.
    pub(super) rebind: Notify,
    /// Wakes the publisher: the operator's status may have changed.
    pub(super) changed: Notify,
    pub(super) tally: Mutex<Tally>,
    /// The operator's health, from its passes.
    pub(super) health: Mutex<Health>,
    /// The recent passes.
    pub(super) meter: Meter,
    /// Workers that take keys; 0 before they run.
    pub(super) workers: AtomicUsize,
    /// The capacity that an autoscaler sets instead of the declared one.
    pub(super) scaled: Mutex<Option<CapacityPlan>>,
    /// Wakes the driver: `scaled` has changed.
    pub(super) rescale: Notify,
    pub(super) life: Mutex<Life>,
    memories: Mutex<HashMap<ObjectKey, Kept>>,
    /// The key of each custom resource by uid, to find a child's owner.
    uids: Mutex<HashMap<Uid, ObjectKey>>,
    /// Deleted custom resources that left children.
    pub(super) orphaned: Mutex<Orphaned>,
    /// The values that `unique` compares.
    pub(super) uniques: Uniques,
    /// Missing permissions, by request and kind, until the same request succeeds.
    refused: Mutex<BTreeMap<(Request, String), String>>,
    /// Why the API server refuses the status that the plan declares.
    status_writes: Mutex<StatusWrites>,
    /// Recent changes, while another process leads; none while this one works.
    pub(super) recent: Mutex<Option<Recent>>,
}

/// How the API server answers to writes of the status.
#[derive(Debug, Default)]
struct StatusWrites {
    /// The hash of the last plan whose status it accepted.
    accepted: String,
    /// Why it refuses the status, if it accepted none of that plan.
    refused: Option<String>,
}

/// The type of a request, to match a refusal with a later success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Request {
    Get,
    List,
    Apply,
    Create,
    Delete,
    Status,
}

/// The state of an operator.
#[derive(Clone, Default)]
pub(super) struct Life {
    pub(super) phase: Phase,
    /// When its workers started.
    pub(super) started_at: Option<jiff::Timestamp>,
    /// The dependencies (`dependsOn`) that are not ready.
    pub(super) waits_for: Option<String>,
    /// Bound, but not in force yet.
    pub(super) pending: Option<Arc<Bound>>,
    /// Why the wanted plan cannot even be bound.
    pub(super) obstacle: Option<Problem>,
}

/// The capacity in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) crew: Crew,
    /// The queue depth that counts as full; 0 disables this.
    pub(super) max_depth: u32,
    /// The resync period; zero disables it.
    pub(super) resync: Duration,
}

/// Counters of an operator's passes.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) passes: u64,
    pub(super) failures: u64,
    /// Failures that the custom resource's own input caused.
    pub(super) own_failures: u64,
    pub(super) last_error: Option<String>,
    pub(super) last_pass: Option<jiff::Timestamp>,
}

/// Locks a mutex and ignores poisoning: none of our locks is held across a panic with its data half written.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(super) fn new(
        context: Arc<Context>,
        role: Role,
        metrics: OperatorMetrics,
        queue: Queue<ObjectKey>,
        wanted: Revised,
    ) -> Self {
        let share = wanted.plan.full_name();
        Self {
            calls: Calls::new(context.external.of_operator(&share), queue.clone()),
            wire: context.wire.on_account_of(Share::new(share)).in_part(),
            context,
            plans: watch::Sender::new(Plans::new(wanted)),
            role,
            metrics,
            readers: Arc::new(Readers::new(queue.clone())),
            objects: Objects::default(),
            scalers: Scalers::default(),
            queue,
            bound: ArcSwapOption::empty(),
            ends_only: AtomicBool::new(false),
            suspended: AtomicBool::new(false),
            rebind: Notify::new(),
            changed: Notify::new(),
            tally: Mutex::default(),
            health: Mutex::default(),
            meter: Meter::default(),
            workers: AtomicUsize::new(0),
            scaled: Mutex::default(),
            rescale: Notify::new(),
            life: Mutex::default(),
            memories: Mutex::default(),
            uids: Mutex::default(),
            orphaned: Mutex::default(),
            uniques: Uniques::default(),
            refused: Mutex::default(),
            status_writes: Mutex::default(),
            recent: Mutex::default(),
        }
    }

    /// Suspends or resumes the passes over custom resources that are not being deleted. On resumption all are queued.
    pub(super) fn suspend(&self, suspended: bool) {
        if self.suspended.swap(suspended, Ordering::AcqRel) == suspended {
            return;
        }
        self.changed.notify_one();
        let Some(bound) = self.bound.load_full().filter(|_| !suspended) else {
            return;
        };
        for key in bound.cr_keys().into_iter().chain(bound.strays()) {
            self.enqueue(key, Lane::Changed);
        }
        self.notice_orphans(&bound);
    }

    /// Records a missing permission, or that it was granted; returns the answer.
    pub(super) fn heard<T>(
        &self,
        request: Request,
        kind: &Served,
        answer: Result<T, WireError>,
    ) -> Result<T, WireError> {
        let mut refused = lock(&self.refused);
        let key = || (request, format!("{}.{}", kind.plural, kind.group));
        let news = match &answer {
            Err(error @ WireError::Forbidden { .. }) => {
                refused.insert(key(), error.to_string()).is_none()
            }
            Ok(_) => !refused.is_empty() && refused.remove(&key()).is_some(),
            Err(_) => false,
        };
        if news {
            self.changed.notify_one();
        }
        answer
    }

    /// Records that a custom resource has the status that the plan of that hash writes.
    pub(super) fn status_accepted(&self, plan: &str) {
        let mut writes = lock(&self.status_writes);
        if writes.accepted != plan {
            plan.clone_into(&mut writes.accepted);
        }
        if writes.refused.take().is_some() {
            self.changed.notify_one();
        }
    }

    /// Records why a status of the plan of that hash is not written. It is a problem of the operator unless the plan's status was
    /// accepted for another custom resource.
    pub(super) fn status_refused(&self, plan: &str, why: String) {
        let mut writes = lock(&self.status_writes);
        if writes.accepted != plan && writes.refused.as_ref() != Some(&why) {
            writes.refused = Some(why);
            self.changed.notify_one();
        }
    }

    /// Returns the problems of the requests that passes made.
    pub(super) fn problems(&self) -> Vec<Problem> {
        let rights = lock(&self.refused);
        let mut problems: Vec<Problem> = rights
            .values()
            .map(|message| Problem {
                reason: KatalogReason::Forbidden,
                message: message.clone(),
            })
            .collect();
        if let Some(message) = &lock(&self.status_writes).refused {
            problems.push(Problem {
                reason: KatalogReason::StatusNotWritable,
                message: message.clone(),
            });
        }
        problems
    }

    pub(super) fn set_phase(&self, phase: Phase) {
        let mut life = lock(&self.life);
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
    pub(super) fn set_pending(&self, pending: Option<Arc<Bound>>, obstacle: Option<Problem>) {
        let mut life = lock(&self.life);
        (life.pending, life.obstacle) = (pending, obstacle);
        drop(life);
        self.changed.notify_one();
    }

    /// Returns the effective plan of the operator: the running one, or the wanted one if none runs.
    pub(super) fn plan(&self) -> Arc<OperatorPlan> {
        self.plans.borrow().effective().plan.clone()
    }

    /// Holds the queue while a dependency is not ready, and publishes which; or releases it.
    pub(super) fn wait_for(&self, waits_for: Option<String>) {
        self.queue.hold(waits_for.is_some());
        let mut life = lock(&self.life);
        if life.waits_for != waits_for {
            life.waits_for = waits_for;
            self.changed.notify_one();
        }
    }

    /// Queues the custom resources whose `unique` result changed because `key` changed.
    pub(super) fn compare_anew(&self, key: &ObjectKey) {
        if let Some(bound) = self.bound.load_full() {
            for other in self.uniques.refresh(&bound, key) {
                self.enqueue(other, Lane::Changed);
            }
        }
    }

    /// Queues a custom resource for a pass; an operator that yields runs none.
    pub(super) fn enqueue(&self, key: ObjectKey, lane: Lane) {
        if self.role == Role::Reconciles && !self.remembers(&key, lane) {
            self.queue.add(key, lane);
        }
    }

    /// Takes the memory of a custom resource for a pass: the queue allows no two passes over one key. The part that stays
    /// says whether it is ready, which does not change while a pass only reads.
    pub(super) fn take_memory(&self, key: &ObjectKey) -> Memory {
        let mut memories = lock(&self.memories);
        memories.get_mut(key).map(Kept::take).unwrap_or_default()
    }

    pub(super) fn put_memory(&self, key: &ObjectKey, memory: Memory) {
        lock(&self.memories).insert(key.clone(), memory.into());
    }

    /// True if an autoscaler's capacity is in effect.
    pub(super) fn is_scaled(&self) -> bool {
        lock(&self.scaled).is_some()
    }

    /// Returns the capacity in effect: the declared one, or the autoscaler's.
    pub(super) fn pace(&self, plan: &OperatorPlan) -> Pace {
        let scaled = lock(&self.scaled).clone().unwrap_or_default();
        let declared = Crew {
            least: plan.workers,
            most: plan.most_workers,
        };
        Pace {
            crew: scaled.workers.map_or(declared, Crew::from),
            max_depth: scaled.queue_depth.unwrap_or(plan.queue.max_depth),
            resync: scaled.resync.unwrap_or(plan.resync),
        }
    }

    /// Returns its current metrics.
    pub(super) fn figures(&self) -> Figures {
        let recent = self.meter.recent();
        let workers = self.workers.load(Ordering::Relaxed);
        let whole = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        // Surplus workers that finish their last pass are not counted beyond the total.
        let busy = self.queue.busy().min(workers);
        Figures {
            queue_depth: whole(self.queue.depth()),
            workers: whole(workers),
            autoscale_active: self.is_scaled(),
            workers_busy_percent: whole((busy * 100).checked_div(workers).unwrap_or(0)),
            reconcile_duration_p95_ms: u64::try_from(recent.p95.as_millis()).unwrap_or(u64::MAX),
            error_rate_percent: recent.error_percent,
        }
    }

    /// Resets readiness when another plan is in force: custom resources count as ready again after a pass under it.
    pub(super) fn forget_readiness(&self) {
        for memory in lock(&self.memories).values_mut() {
            memory.ready = false;
        }
    }

    pub(super) fn ready_count(&self) -> usize {
        lock(&self.memories)
            .values()
            .filter(|memory| memory.ready)
            .count()
    }

    /// Returns how many custom resources `reconcileGate` holds back.
    pub(super) fn gated_count(&self) -> usize {
        let is_gated = |kept: &&Kept| kept.held_back == Some(Held::Gated);
        lock(&self.memories).values().filter(is_gated).count()
    }

    pub(super) fn owner(&self, uid: &Uid) -> Option<ObjectKey> {
        lock(&self.uids).get(uid).cloned()
    }

    /// Records a new custom resource.
    pub(super) fn learn(&self, uid: &Uid, key: &ObjectKey) {
        lock(&self.uids).insert(uid.clone(), key.clone());
    }

    /// Removes the state of a deleted custom resource.
    pub(super) fn unlearn(&self, uid: &Uid, key: &ObjectKey) {
        lock(&self.uids).remove(uid);
        lock(&self.memories).remove(key);
        self.calls.end(key);
        self.queue.remove(key);
        self.forget_recent(key);
        let unread = self.readers.forget(key);
        self.objects.release(&unread, &self.readers);
        self.scalers.settle(key, &[]);
        let Some(bound) = self.bound.load_full() else {
            return;
        };
        let measure = self.measure();
        let turn = lock(&self.health).gone(key, measure);
        self.tell_turn(&bound.plan, turn);
    }

    /// Returns the current measure for the operator's passes.
    fn measure(&self) -> Measure {
        Measure {
            threshold: self.plan().queue.failure_threshold,
            instances: lock(&self.uids).len(),
            now: self.context.clock.now(),
        }
    }

    /// Logs that the operator became degraded, or recovered.
    fn tell_turn(&self, plan: &OperatorPlan, turn: Option<Turn>) {
        let (katalog, operator) = (&plan.katalog, &plan.name);
        match turn {
            None => return,
            Some(Turn::Degraded) => {
                let health = lock(&self.health);
                let why = health.degraded().map(|degraded| &*degraded.message);
                tracing::warn!(%katalog, operator, error = why, "operator is degraded");
            }
            Some(Turn::Recovered) => tracing::info!(%katalog, operator, "operator has recovered"),
        }
        self.changed.notify_one();
    }

    /// Removes the state of all custom resources, since the CRD is gone.
    pub(super) fn clear(&self) {
        let keys: Vec<ObjectKey> = lock(&self.uids).drain().map(|(_, key)| key).collect();
        for key in keys {
            self.read(&key, []);
            self.scalers.settle(&key, &[]);
        }
        lock(&self.memories).clear();
        self.calls.clear();
        *lock(&self.health) = Health::default();
    }

    /// Records that a pass over a custom resource has read exactly these.
    pub(super) fn read<'r>(&self, key: &ObjectKey, reads: impl IntoIterator<Item = &'r Read>) {
        let unread = self.readers.settle(key, reads);
        self.objects.release(&unread, &self.readers);
    }

    /// Counts a pass over a custom resource; `is_known` says whether it still exists, `is_retried` whether it is retried with
    /// backoff.
    pub(super) fn passed(
        &self,
        plan: &OperatorPlan,
        key: &ObjectKey,
        (is_known, is_retried): (bool, bool),
        failed: Option<Failed>,
    ) {
        let measure = self.measure();
        let turn = match &failed {
            None => lock(&self.health).passed(key, measure),
            Some(_) if !is_known => None,
            Some(failed) if failed.own_input => lock(&self.health).failed_alone(key, measure),
            Some(failed) => lock(&self.health).failed(key, &failed.message, is_retried, measure),
        };
        let mut tally = lock(&self.tally);
        tally.passes += 1;
        tally.last_pass = Some(measure.now);
        if let Some(failed) = failed {
            tally.failures += 1;
            tally.own_failures += u64::from(failed.own_input);
            tally.last_error = Some(failed.message);
        }
        drop(tally);
        self.tell_turn(plan, turn);
    }
}
