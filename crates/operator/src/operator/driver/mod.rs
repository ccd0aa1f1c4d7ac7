//! The task that takes an operator through the lifetime of its CRD.
//!
//! ```text
//!  wait for the CRD ──► bind: kinds, watches ──► synced ──► workers run ──► CRD gone, or running version not served
//!        ▲                                          │  ▲                              │
//!        │                                          └──┘ another plan, other kinds:   │
//!        │                                               bind beside, then swap       │
//!        └────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! A plan is in force from its swap on ([`Plans`]). Until everything it needs can be read, the previous plan stays in force.

mod rollout;
mod waits;

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use orkestra_engine::reconcile::crd::CrdRecord;
use orkestra_plan::{ObjectKey, OperatorPlan, Plans, Revised};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use self::{
    rollout::{NextPlan, is_same_work},
    waits::{changed, deletable, next_changed, returned, sleep_until, synced, targets_changed},
};
use crate::{
    operator::{kinds, source_states::SourceStates, work},
    queue::{Lane, QueueWorkers},
    shared::{Shared, bound_plan::BoundPlan},
    sources::cross,
    status::{Phase, Role},
};

/// The delay before kinds are looked up again after the API server did not answer, or did not serve one of them.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Resync periods are shortened by up to this fraction, so that operators do not resync in step.
const RESYNC_JITTER: f64 = 0.1;

/// Drives one operator.
pub(crate) struct Driver {
    pub(crate) shared: Arc<Shared>,
    pub(crate) plans: watch::Receiver<Plans>,
    /// Whether its workers should run.
    pub(crate) duty: watch::Receiver<bool>,
    pub(crate) stop: CancellationToken,
}

/// Why a lifetime of the CRD ended.
#[derive(PartialEq, Eq)]
enum LifetimeEnd {
    /// The operator stops.
    Stopped,
    /// The CRD is deleted, was replaced, or does not serve the running version.
    Anew,
}

/// The state during one lifetime of the CRD.
pub(crate) struct Life {
    crd: Arc<CrdRecord>,
    /// The plan that was bound last, whether it is in force or not.
    latest: Option<Arc<OperatorPlan>>,
    /// Bound, but not in force yet.
    next: Option<NextPlan>,
    workers: Option<QueueWorkers<ObjectKey>>,
    /// The resync period in effect.
    resync: Duration,
    resync_at: Option<Instant>,
    look_again_at: Option<Instant>,
    /// True if `next` is bound for deletions only.
    ends_only: bool,
    /// The state of read objects as all custom resources were last notified of it.
    source_states: SourceStates,
}

impl Life {
    fn next(&self) -> Option<&BoundPlan> {
        self.next.as_ref().map(|next| &*next.bound)
    }
}

impl Driver {
    /// Runs until `stop` is cancelled; returns after writes in flight have ended.
    pub(crate) async fn run(mut self) {
        while let Some(crd) = self.await_crd().await {
            let mut life = Life {
                crd,
                latest: None,
                next: None,
                workers: None,
                resync: Duration::ZERO,
                resync_at: None,
                look_again_at: None,
                ends_only: false,
                source_states: SourceStates::default(),
            };
            let over = self.live(&mut life).await;
            if let Some(workers) = life.workers.take() {
                workers.stop().await;
            }
            self.shared.plans.send_modify(Plans::stop);
            self.shared.bound.store(None);
            self.shared.set_pending(None, None);
            self.shared.clear();
            if over == LifetimeEnd::Stopped {
                return;
            }
        }
    }

    /// Returns the CRD once it serves the plan's version; none if the operator stops first.
    async fn await_crd(&mut self) -> Option<Arc<CrdRecord>> {
        let mut crds = self.shared.context.crds.changed();
        loop {
            crds.mark_unchanged();
            let plan = self.wanted().plan;
            if let Some(crd) = self.shared.context.crds.definition(&plan.resource)
                && crd.serves(&plan.resource.version)
            {
                return Some(crd);
            }
            self.shared.set_phase(Phase::Waiting);
            tokio::select! {
                () = self.stop.cancelled() => return None,
                _ = crds.changed() => {}
                _ = self.plans.changed() => {}
            }
        }
    }

    async fn live(&mut self, life: &mut Life) -> LifetimeEnd {
        let mut crds = self.shared.context.crds.changed();
        let mut operators = self.shared.context.operators.changed();
        self.shared.set_phase(Phase::Starting);
        self.shared.ends_only.store(false, Ordering::Relaxed);
        self.bind(life).await;
        loop {
            self.shared.changed.notify_one();
            let current = self.shared.bound.load_full();
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return LifetimeEnd::Stopped,
                _ = crds.changed() => {
                    crds.mark_unchanged();
                    if !self.follow_crd(life).await {
                        return LifetimeEnd::Anew;
                    }
                    self.follow_targets(life).await;
                }
                _ = operators.changed() => {
                    operators.mark_unchanged();
                    self.follow_targets(life).await;
                }
                () = targets_changed(current.as_deref(), &life.source_states) => self.follow_targets(life).await,
                changed = self.plans.changed() => {
                    if changed.is_err() {
                        return LifetimeEnd::Stopped;
                    }
                    if !self.follow_plan(life).await {
                        return LifetimeEnd::Anew;
                    }
                }
                () = synced(life.next.as_ref()) => self.swap(life),
                () = deletable(life.next()), if current.is_none() && self.works() => self.end_only(life),
                Ok(()) = self.duty.changed() => self.apply_duty(life),
                () = self.shared.rebind.notified() => self.rebind(life).await,
                () = self.shared.capacity.rescale.notified() => self.adopt_figures(life),
                () = sleep_until(life.look_again_at) => self.bind(life).await,
                () = returned(&self.shared, life.look_again_at.is_some()) => self.bind(life).await,
                () = sleep_until(life.resync_at) => self.resync(life),
                () = changed(current.as_deref()) => self.follow_targets(life).await,
                () = next_changed(life.next()) => {}
            }
        }
    }

    /// Returns the plan of the newest accepted revision, and marks it as seen.
    fn wanted(&mut self) -> Revised {
        self.plans.borrow_and_update().wanted().clone()
    }

    /// Follows the CRD; false if this lifetime is over.
    async fn follow_crd(&mut self, life: &mut Life) -> bool {
        let [runs, wanted] = {
            let plans = self.shared.plans.borrow();
            [plans.effective(), plans.wanted()].map(|of| of.plan.resource.clone())
        };
        let Some(crd) = self.shared.context.crds.definition(&runs) else {
            return false;
        };
        // A terminating CRD is served until its last object is gone: the deletion of these objects needs the operator.
        if crd.id.uid != life.crd.id.uid || !(crd.serves(&runs.version) || crd.deleting) {
            return false;
        }
        let differs = |version: &str| {
            let now = (crd.serves(version), crd.status_of(version));
            now != (life.crd.serves(version), life.crd.status_of(version))
        };
        let crd_status_differs = differs(&runs.version) || differs(&wanted.version);
        life.crd = crd;
        if life.crd.deleting && *self.duty.borrow() {
            self.shared.set_phase(Phase::Deleting);
        }
        let lacks = |bound: &BoundPlan| {
            !bound.absent.is_empty() || bound.sources.observed.follow(&self.shared.context.crds)
        };
        let absent = self.shared.bound.load().as_deref().is_some_and(lacks);
        if crd_status_differs || absent || life.next().is_some_and(lacks) {
            self.bind(life).await;
        }
        true
    }

    /// What defines the kind of `plan`: the CRD, unless the kind is built in.
    fn definition(&self, life: &Life, plan: &OperatorPlan) -> Arc<CrdRecord> {
        let built_in = Some(&plan.resource).filter(|_| plan.watched.built_in);
        let built_in = built_in.and_then(|kind| self.shared.context.crds.definition(kind));
        built_in.unwrap_or_else(|| life.crd.clone())
    }

    /// Follows what the plan reads of other operators: if its kind changed, the plan is bound again; if it can be
    /// read now, or no longer, all custom resources are queued.
    async fn follow_targets(&mut self, life: &mut Life) {
        let current = self.shared.bound.load_full();
        let Some(latest) = life.next().or(current.as_deref()) else {
            return;
        };
        let resolved = cross::resolve(&self.shared.context, &latest.plan);
        if !latest.sources.targets.are(&resolved) {
            return self.bind(life).await;
        }
        let Some(bound) = current else { return };
        let source_states = SourceStates::of(&bound);
        if life.source_states != source_states {
            life.source_states = source_states;
            for key in bound.crs.store().keys() {
                self.shared.enqueue(key, Lane::Changed);
            }
        }
    }

    /// Follows the wanted plan; false if this lifetime is over.
    async fn follow_plan(&mut self, life: &mut Life) -> bool {
        let wanted = self.wanted();
        let plan = &wanted.plan;
        // The same plan under another revision name.
        if life
            .latest
            .as_ref()
            .is_some_and(|latest| Arc::ptr_eq(latest, plan))
        {
            return true;
        }
        let current = self.shared.bound.load_full();
        if plan.watched.built_in {
            // What stands in for its CRD is of one version.
            life.crd = self.definition(life, plan);
        }
        if current.is_none() && !life.crd.serves(&plan.resource.version) {
            return false;
        }
        if current.is_some_and(|current| is_same_work(&current, plan)) && life.next.is_none() {
            life.latest = Some(plan.clone());
            self.put_in_force(wanted);
            self.adopt_figures(life);
        } else {
            self.bind(life).await;
        }
        true
    }

    /// Applies workers, resync and backoff, on which no pass depends.
    fn adopt_figures(&self, life: &mut Life) {
        let plan = self.shared.plan();
        let pace = self.shared.capacity.pace(&plan);
        if let Some(workers) = &life.workers {
            workers.resize(pace.workers);
        }
        self.shared.queue.set_backoff(plan.queue.backoff);
        // A change of the worker count does not delay a resync that is due.
        if life.resync != pace.resync {
            life.resync = pace.resync;
            self.schedule_resync(life);
        }
        self.shared.changed.notify_one();
    }

    async fn rebind(&mut self, life: &mut Life) {
        let Some(bound) = self.shared.bound.load_full() else {
            return;
        };
        let needed = kinds::needed(&bound.plan, &bound.declared, Some(&bound));
        let known = bound.kinds.len() + bound.absent.len();
        if needed.len() != known || !needed.iter().all(|kind| bound.knows(kind)) {
            self.bind(life).await;
        }
    }

    /// Starts or stops the workers as the operator's duty requires, and publishes that.
    fn apply_duty(&self, life: &mut Life) {
        let Some(bound) = self.shared.bound.load_full() else {
            return;
        };
        let duty = *self.duty.borrow();
        if !duty {
            // Their passes are not awaited: they end with the lease.
            if let Some(workers) = life.workers.take() {
                workers.resize(0);
            }
            self.shared.stand_by();
            self.shared.instances.forget_standings();
        } else if life.workers.is_none() && self.shared.role == Role::Reconciles {
            life.workers = Some(work::start(&self.shared, &bound.plan));
        }
        if life.ends_only {
            return;
        }
        if duty {
            self.inherit(&bound);
            self.shared.take_over(&bound);
            self.shared.notice_orphans(&bound);
        }
        self.shared.set_phase(match (duty, life.crd.deleting) {
            (false, _) => Phase::Standby,
            (true, true) => Phase::Deleting,
            (true, false) => Phase::Running,
        });
        self.adopt_figures(life);
    }

    /// Takes over, once, what the predecessor knew of the custom resources.
    fn inherit(&self, bound: &BoundPlan) {
        let revision = self.shared.plans.borrow().effective().revision.clone();
        let row = self.shared.context.rows.of(&bound.plan);
        let records = bound.crs.store().snapshot();
        let records = records.iter().map(|record| &**record);
        let has_status = bound.crd_status.has_status;
        let instances = &self.shared.instances;
        instances.inherit(records, row.as_ref(), (&revision, has_status));
    }

    fn resync(&self, life: &mut Life) {
        let Some(bound) = self.shared.bound.load_full() else {
            return;
        };
        for key in bound.cr_keys() {
            self.shared.enqueue(key, Lane::Resync);
        }
        self.schedule_resync(life);
    }

    fn schedule_resync(&self, life: &mut Life) {
        let (period, entropy) = (life.resync, &self.shared.context.entropy);
        life.resync_at =
            (!period.is_zero()).then(|| Instant::now() + entropy.shorten(period, RESYNC_JITTER));
    }
}
