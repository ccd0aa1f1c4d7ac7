//! The task that leads an operator through the life of its CRD.
//!
//! ```text
//!  wait for the CRD ──► bind: kinds, watches ──► synced ──► workers run ──► CRD gone, or another version
//!        ▲                                          │  ▲                              │
//!        │                                          └──┘ another plan, other kinds:   │
//!        │                                               bind anew beside, then swap  │
//!        └────────────────────────────────────────────────────────────────────────────┘
//! ```

use std::{future::pending, sync::Arc, time::Duration};

use orkestra_core::{
    plan::{ObjectKey, OperatorPlan},
    reconcile::crd::CrdRecord,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    bind,
    bound::Bound,
    kinds,
    operator::{Phase, Role},
    queue::{Lane, Workers},
    shared::Shared,
    sources::{
        cross,
        moods::{self, Moods},
        observed,
    },
    work,
};

/// How soon kinds are looked up again after the API server did not answer, or did not serve one of them.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// Resync periods are cut by up to this fraction, so that operators do not resync in step.
const RESYNC_JITTER: f64 = 0.1;

/// Leads one operator.
pub(super) struct Driver {
    pub(super) shared: Arc<Shared>,
    pub(super) plans: watch::Receiver<Arc<OperatorPlan>>,
    /// Whether its workers are to run.
    pub(super) duty: watch::Receiver<bool>,
    pub(super) stop: CancellationToken,
}

/// Why a life of the CRD is over.
#[derive(PartialEq, Eq)]
enum Over {
    /// The operator stops.
    Stopped,
    /// The CRD is gone, is another one, or the plan wants another version.
    Anew,
}

/// What one life of the CRD holds.
struct Life {
    crd: Arc<CrdRecord>,
    /// Bound, but its watches have not shown everything yet.
    next: Option<Arc<Bound>>,
    workers: Option<Workers<ObjectKey>>,
    /// The resync period that counts.
    resync: Duration,
    resync_at: Option<Instant>,
    look_again_at: Option<Instant>,
    /// What all custom resources were last told of what they read.
    moods: Moods,
}

impl Driver {
    /// Runs until `stop` is cancelled; then writes in flight have ended.
    pub(super) async fn run(mut self) {
        while let Some(crd) = self.await_crd().await {
            let mut life = Life {
                crd,
                next: None,
                workers: None,
                resync: Duration::ZERO,
                resync_at: None,
                look_again_at: None,
                moods: Moods::default(),
            };
            let over = self.live(&mut life).await;
            if let Some(workers) = life.workers.take() {
                workers.stop().await;
            }
            self.shared.bound.store(None);
            self.shared.clear();
            if over == Over::Stopped {
                return;
            }
        }
    }

    /// The CRD, once it serves the plan's version; none when the operator stops first.
    async fn await_crd(&mut self) -> Option<Arc<CrdRecord>> {
        let mut crds = self.shared.context.crds.changed();
        loop {
            crds.mark_unchanged();
            let plan = self.plans.borrow_and_update().clone();
            if let Some(crd) = self.shared.context.crds.get(&plan.resource.group_kind())
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

    async fn live(&mut self, life: &mut Life) -> Over {
        let mut crds = self.shared.context.crds.changed();
        let mut operators = self.shared.context.operators.changed();
        let version = self.plans.borrow_and_update().resource.version.clone();
        self.shared.set_phase(Phase::Starting);
        self.bind(life).await;
        loop {
            self.shared.changed.notify_one();
            let current = self.shared.bound.load_full();
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Over::Stopped,
                _ = crds.changed() => {
                    crds.mark_unchanged();
                    if !self.follow_crd(life, &version).await {
                        return Over::Anew;
                    }
                    self.follow_targets(life).await;
                }
                _ = operators.changed() => {
                    operators.mark_unchanged();
                    self.follow_targets(life).await;
                }
                () = targets_changed(current.as_deref(), &life.moods) => self.follow_targets(life).await,
                changed = self.plans.changed() => {
                    if changed.is_err() {
                        return Over::Stopped;
                    }
                    if self.plans.borrow_and_update().resource.version != version {
                        return Over::Anew;
                    }
                    self.follow_plan(life).await;
                }
                () = synced(life.next.as_deref()) => self.swap(life),
                Ok(()) = self.duty.changed() => self.employ(life),
                () = self.shared.rebind.notified() => self.rebind(life).await,
                () = self.shared.rescale.notified() => self.adopt_figures(life),
                () = sleep_until(life.look_again_at) => self.bind(life).await,
                () = returned(&self.shared, life.look_again_at.is_some()) => self.bind(life).await,
                () = sleep_until(life.resync_at) => self.resync(life),
                () = changed(current.as_deref().or(life.next.as_deref())) => {}
            }
        }
    }

    /// Follows the CRD; false when this life is over.
    async fn follow_crd(&mut self, life: &mut Life, version: &str) -> bool {
        let kind = self.plans.borrow().resource.group_kind();
        let Some(crd) = self.shared.context.crds.get(&kind) else {
            return false;
        };
        // A terminating CRD is served until its last object is gone: their deletions are work.
        if crd.id.uid != life.crd.id.uid || !(crd.serves(version) || crd.deleting) {
            return false;
        }
        let facts_differ = crd.facts(version) != life.crd.facts(version);
        life.crd = crd;
        if life.crd.deleting && *self.duty.borrow() {
            self.shared.set_phase(Phase::Deleting);
        }
        let absent =
            self.shared.bound.load().as_ref().is_some_and(|bound| {
                !bound.absent.is_empty() || bound.observed.follow(&self.shared)
            });
        if facts_differ || absent {
            self.bind(life).await;
        }
        true
    }

    /// Follows what the plan reads of other operators: where that is another kind now, it is bound anew; where it can be
    /// read or not any more, all custom resources look again.
    async fn follow_targets(&mut self, life: &mut Life) {
        let current = self.shared.bound.load_full();
        let Some(latest) = life.next.as_ref().or(current.as_ref()) else {
            return;
        };
        let resolved = cross::resolve(&self.shared.context, &latest.plan);
        if !latest.targets.are(&resolved) {
            return self.bind(life).await;
        }
        let Some(bound) = current else { return };
        let moods = Moods::of(&bound);
        if life.moods != moods {
            life.moods = moods;
            for key in bound.crs.store().keys() {
                self.shared.enqueue(key, Lane::Changed);
            }
        }
    }

    async fn follow_plan(&mut self, life: &mut Life) {
        let plan = self.plans.borrow().clone();
        let current = self
            .shared
            .bound
            .load_full()
            .map(|bound| bound.plan.clone());
        if current
            .as_ref()
            .is_some_and(|current| current.hash == plan.hash && current.reads == plan.reads)
            && life.next.is_none()
        {
            self.adopt_figures(life);
            return;
        }
        self.bind(life).await;
    }

    /// Workers, resync and backoff: nothing of a pass depends on them.
    fn adopt_figures(&self, life: &mut Life) {
        let plan = self.plans.borrow().clone();
        let pace = self.shared.pace(&plan);
        if let Some(workers) = &life.workers {
            workers.resize(pace.crew);
        }
        self.shared.queue.set_backoff(plan.queue.backoff);
        // More workers do not put off what is due.
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
        let needed = kinds::needed(&bound.plan, Some(&bound));
        let known = bound.kinds.len() + bound.absent.len();
        if needed.len() != known || !needed.iter().all(|kind| bound.knows(kind)) {
            self.bind(life).await;
        }
    }

    /// Starts what the plan needs of the cluster; it takes over once it is synced.
    async fn bind(&mut self, life: &mut Life) {
        life.look_again_at = None;
        let plan = self.plans.borrow().clone();
        let Some(facts) = life.crd.facts(&plan.resource.version) else {
            return;
        };
        let current = self.shared.bound.load_full();
        let before = current.as_deref().or(life.next.as_deref());
        let needed = kinds::needed(&plan, before);
        let observed = before.map(|before| &before.observed);
        // Large and rare: in memory of its own, while it lasts.
        let observed = Box::pin(observed::find(&self.shared, &plan, observed)).await;
        let found = Box::pin(kinds::find(&self.shared, &plan, before, needed)).await;
        match found {
            Ok(found) => {
                if !found.absent.is_empty() || observed.contains(&None) {
                    life.look_again_at = Some(Instant::now() + LOOK_AGAIN);
                }
                let unchanged = current.as_ref().is_some_and(|bound| {
                    bound.plan.hash == plan.hash
                        && bound.facts == facts
                        && bound.absent == found.absent
                        && bound
                            .targets
                            .are(&cross::resolve(&self.shared.context, &plan))
                        && bound.observed.are(&observed)
                        && bound.serves_exactly(&found.served)
                });
                let of = (&*life.crd, plan, facts);
                life.next =
                    (!unchanged).then(|| Arc::new(bind::bind(&self.shared, of, found, observed)));
            }
            Err(error) => {
                tracing::warn!(operator = %plan.name, error = %error, "cannot look up the kinds of its children");
                life.look_again_at = Some(Instant::now() + LOOK_AGAIN);
            }
        }
        self.shared.set_pending(life.next.clone());
    }

    /// The bound plan has seen everything: it takes over.
    fn swap(&mut self, life: &mut Life) {
        let Some(next) = life.next.take() else { return };
        self.shared.set_pending(None);
        let before = self.shared.bound.swap(Some(next.clone()));
        self.shared.uniques.rebuild(&next);
        // Inventories may name kinds that only the custom resources could tell of.
        self.shared.rebind.notify_one();
        for record in next.crs.store().snapshot() {
            self.shared.learn(&record.id.uid, &record.id.key);
            let queue = &self.shared.queue;
            queue.let_through(&record.id.key, record.deleting);
        }
        let same_work = before.as_ref().is_some_and(|before| {
            before.plan.hash == next.plan.hash
                && before.facts == next.facts
                && before.absent == next.absent
                && before.targets.same(&next.targets)
                && before.observed.same(&next.observed)
        });
        life.moods = Moods::of(&next);
        if !same_work || before.is_some_and(|before| before.kinds.len() != next.kinds.len()) {
            for key in next.cr_keys().into_iter().chain(next.strays()) {
                self.shared.enqueue(key, Lane::Changed);
            }
        }
        self.employ(life);
    }

    /// Has workers run or not, as the operator is to work, and tells so.
    fn employ(&self, life: &mut Life) {
        let Some(bound) = self.shared.bound.load_full() else {
            return;
        };
        let duty = *self.duty.borrow();
        if !duty {
            // Nobody waits for their passes: they end with the lease.
            if let Some(workers) = life.workers.take() {
                workers.resize(0);
            }
            self.shared.stand_by();
        } else if life.workers.is_none() && self.shared.role == Role::Reconciles {
            let pace = self.shared.pace(&bound.plan);
            life.workers = Some(work::start(&self.shared, pace.crew));
        }
        if duty {
            self.shared.take_over(&bound);
        }
        self.shared.set_phase(match (duty, life.crd.deleting) {
            (false, _) => Phase::Standby,
            (true, true) => Phase::Deleting,
            (true, false) => Phase::Running,
        });
        self.adopt_figures(life);
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

async fn synced(bound: Option<&Bound>) {
    match bound {
        Some(bound) => bound.synced().await,
        None => pending().await,
    }
}

async fn targets_changed(bound: Option<&Bound>, moods: &Moods) {
    match bound {
        Some(bound) => moods::changed(bound, moods).await,
        None => pending().await,
    }
}

async fn changed(bound: Option<&Bound>) {
    match bound {
        Some(bound) => bound.changed().await,
        None => pending().await,
    }
}

/// Ends when the API server is back, where that is waited for.
async fn returned(shared: &Shared, wanted: bool) {
    if !wanted {
        return pending().await;
    }
    let reach = shared.context.wire.reach();
    reach.back(reach.returns()).await;
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => pending().await,
    }
}
