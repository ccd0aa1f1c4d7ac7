//! Owns the running operators of all Katalogs of the process.
//!
//! ```text
//!  want / forget ──► Ledger ── effects ──► RunningOperator::start, reconfigure, stop
//!                      ▲                          │ (a stop takes time, in its own task)
//!                      └────────── stopped ◄──────┘
//!                      ├──► Snapshot: a view per entry, for status and pages
//!                      └──► Demand: kinds to claim ──► the keeper of claims ──► Standings, back into the ledger
//! ```
//!
//! One file: every method works on the same state under one lock.

mod views;

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use orkestra_ground::tasks::{self, Ends, Task, panic_text};
use orkestra_plan::{GroupKind, KatalogRef, Plans};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::{
    claims::{ClaimRequest, ClaimState, Standings},
    directory::OperatorView,
    failures::Failures,
    ledger::{Effect, Ledger, ReleaseHold, SlotKey, WantedKatalog},
};
use orkestra_operator::{OperatorStatus, Role, RunningOperator, Unfinished, context::Context};

/// Owns the running operators.
#[derive(Debug)]
pub(crate) struct Supervisor {
    context: Arc<Context>,
    /// A panic under the lock leaves a consistent state: the ledger's changes come before anything that could panic.
    state: Mutex<SupervisorState>,
    snapshot: watch::Sender<Snapshot>,
    /// Whether all Katalogs that existed at the start are known.
    synced: watch::Receiver<bool>,
    /// The kinds to claim.
    demand: watch::Sender<Arc<ClaimRequest>>,
    /// The holders of kinds.
    standings: watch::Sender<Arc<Standings>>,
}

/// A view per entry of each Katalog that has a plan, sorted by name.
pub(crate) type Snapshot = Arc<BTreeMap<KatalogRef, Vec<OperatorView>>>;

#[derive(Debug)]
struct SupervisorState {
    ledger: Ledger,
    operators: BTreeMap<SlotKey, RunningOperator>,
    /// The unfinished work of stopping operators.
    stopping: BTreeMap<SlotKey, Unfinished>,
    failures: Failures,
    /// The status of an entry that this process only observes.
    observed: watch::Receiver<OperatorStatus>,
}

impl SupervisorState {
    fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            operators: BTreeMap::new(),
            stopping: BTreeMap::new(),
            failures: Failures::default(),
            observed: watch::channel(OperatorStatus::default()).1,
        }
    }
}

/// While it exists, nothing starts in its kind.
#[derive(Debug)]
pub(crate) struct KindHold {
    supervisor: Arc<Supervisor>,
    kind: GroupKind,
}

/// The answer to [`Supervisor::hold`].
#[derive(Debug)]
pub(crate) enum HoldOutcome {
    /// An operator of the kind still exists: ask again at the next snapshot.
    Busy,
    /// The named other Katalog has the kind.
    Claimed(String),
    /// The kind is not claimed, with the reason if there is one: ask again at the next snapshot.
    Unclaimed(Option<String>),
    /// The kind is held until this is dropped.
    Held(KindHold),
}

impl Drop for KindHold {
    fn drop(&mut self) {
        self.supervisor.update(|ledger| ledger.unhold(&self.kind));
    }
}

impl Supervisor {
    /// Creates a supervisor without operators. All kinds to claim are known once `synced` is true.
    pub(crate) fn new(
        context: Arc<Context>,
        ledger: Ledger,
        synced: watch::Receiver<bool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            context,
            state: Mutex::new(SupervisorState::new(ledger)),
            snapshot: watch::Sender::default(),
            synced,
            demand: watch::Sender::default(),
            standings: watch::Sender::default(),
        })
    }

    /// Returns the kinds to claim.
    pub(crate) fn demand(&self) -> watch::Receiver<Arc<ClaimRequest>> {
        self.demand.subscribe()
    }

    /// Returns the sender through which the keeper of claims reports the holders of kinds.
    pub(crate) fn standings(&self) -> &watch::Sender<Arc<Standings>> {
        &self.standings
    }

    /// A receiver that changes whenever an operator is added, changes its plan or is removed; each clone tracks changes on
    /// its own.
    pub(crate) fn snapshot(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// Sets the wanted state of a Katalog.
    pub(crate) fn want(self: &Arc<Self>, katalog: &KatalogRef, wanted: WantedKatalog) {
        self.update(|ledger| ledger.want(katalog.clone(), wanted));
    }

    /// Removes a Katalog.
    pub(crate) fn forget(self: &Arc<Self>, katalog: &KatalogRef) {
        self.update(|ledger| ledger.forget(katalog));
    }

    /// Removes everything that a Katalog wants except the claims on kinds it has to release.
    pub(crate) fn release(self: &Arc<Self>, katalog: &KatalogRef, leftovers: BTreeSet<GroupKind>) {
        self.update(|ledger| ledger.release(katalog, leftovers));
    }

    /// Records that a Katalog has released that kind.
    pub(crate) fn released(self: &Arc<Self>, katalog: &KatalogRef, kind: &GroupKind) {
        self.update(|ledger| ledger.released(katalog, kind));
    }

    /// Returns the kinds that a Katalog has to release.
    pub(crate) fn leftovers(&self, katalog: &KatalogRef) -> BTreeSet<GroupKind> {
        self.state.lock().ledger.leftovers(katalog)
    }

    /// Returns the kinds that the Katalog holds, according to the cluster and this process.
    pub(crate) fn held_by(&self, katalog: &KatalogRef) -> BTreeSet<GroupKind> {
        self.state.lock().ledger.held_by(katalog)
    }

    /// True if the kind is claimed in the cluster for the Katalog of that uid.
    pub(crate) fn is_held_for(&self, kind: &GroupKind, uid: &str) -> bool {
        self.standings.borrow().is_held_for(kind, uid)
    }

    /// True if another installation has the kind.
    pub(crate) fn is_foreign(&self, kind: &GroupKind) -> bool {
        matches!(
            self.standings.borrow().of(kind),
            Some(ClaimState::Foreign(_))
        )
    }

    /// Requests that no operator runs for a kind, so that the Katalog of that uid can release it.
    pub(crate) fn hold(self: &Arc<Self>, kind: &GroupKind, uid: &str) -> HoldOutcome {
        match self.state.lock().ledger.hold(kind, uid) {
            ReleaseHold::Busy => HoldOutcome::Busy,
            ReleaseHold::Claimed(katalog) => HoldOutcome::Claimed(katalog),
            ReleaseHold::Unclaimed(why) => HoldOutcome::Unclaimed(why),
            ReleaseHold::Held => HoldOutcome::Held(KindHold {
                supervisor: Arc::clone(self),
                kind: kind.clone(),
            }),
        }
    }

    /// Starts and stops the work of operators as this process gains or loses leadership, and as kinds are claimed; never
    /// returns.
    pub(crate) async fn follow_leadership(self: &Arc<Self>) {
        let mut standing = self.context.leadership.changed();
        let mut standings = self.standings.subscribe();
        let mut synced = self.synced.clone();
        loop {
            // Read after they are marked as seen: no change is missed.
            let leads = standing.borrow_and_update().leads;
            let now = Arc::clone(&standings.borrow_and_update());
            let is_synced = *synced.borrow_and_update();
            self.update(|ledger| ledger.stand(now));
            // The senders live as long as `self` and the context.
            tokio::select! {
                _ = standing.wait_for(|now| now.leads != leads) => {}
                _ = standings.changed() => {}
                Ok(_) = synced.wait_for(|now| *now != is_synced) => {}
            }
        }
    }

    /// Stops everything and waits for it, at most for `patience`; nothing starts from then on. Operators stop after those
    /// that depend on them, unless that takes more than half of the time. True if all writes have ended; unfinished operators
    /// are logged by name.
    pub(crate) async fn close(self: &Arc<Self>, patience: Duration) -> bool {
        self.update(Ledger::close);
        let half = patience / 2;
        if tokio::time::timeout(half, self.idle()).await.is_ok() {
            return true;
        }
        self.update(Ledger::hurry);
        let rest = patience.saturating_sub(half);
        if tokio::time::timeout(rest, self.idle()).await.is_ok() {
            return true;
        }
        let state = self.state.lock();
        for key @ (katalog, operator) in state.ledger.unfinished() {
            let unfinished = state.stopping.get(key);
            let keys = unfinished.map(Unfinished::running).unwrap_or_default();
            let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
            tracing::warn!(%katalog, operator, unfinished = keys.join(", "), "operator did not stop in time");
        }
        false
    }

    /// Waits until no operator is left.
    async fn idle(&self) {
        let mut snapshot = self.snapshot();
        while !self.state.lock().ledger.is_idle() && snapshot.changed().await.is_ok() {}
    }

    /// Changes the ledger and executes the effects.
    fn update(self: &Arc<Self>, change: impl FnOnce(&mut Ledger)) {
        let mut state = self.state.lock();
        change(&mut state.ledger);
        // The stop of an operator that never started ends at once, which may let another start.
        loop {
            let effects = state.ledger.settle();
            if effects.is_empty() {
                break;
            }
            for effect in effects {
                self.take(&mut state, effect);
            }
        }
        for (key, operator) in &state.operators {
            operator.set_suspended(state.ledger.is_suspended(&key.0));
            let kind = state.ledger.kind_of(key);
            operator.set_duty(kind.is_some_and(|kind| self.is_on_duty(&state, key, &kind)));
        }
        self.call_for(ClaimRequest {
            kinds: state.ledger.demand(),
            complete: *self.synced.borrow(),
        });
        // Under the lock: of two concurrent changes the view of the later one must stay.
        self.snapshot.send_replace(Arc::new(state.views()));
    }

    fn call_for(&self, demand: ClaimRequest) {
        self.demand.send_if_modified(|before| {
            let differs = **before != demand;
            if differs {
                *before = Arc::new(demand);
            }
            differs
        });
    }

    fn is_on_duty(&self, state: &SupervisorState, key: &SlotKey, kind: &GroupKind) -> bool {
        self.context.leadership.standing().leads && state.ledger.may_work(&key.0, kind)
    }

    fn take(self: &Arc<Self>, state: &mut SupervisorState, effect: Effect) {
        match effect {
            Effect::Start(key, wanted, role) => {
                let kind = wanted.plan.resource.group_kind();
                tracing::info!(katalog = %key.0, operator = key.1, %kind, "starting operator");
                self.start(state, key, &Plans::new(wanted), role);
            }
            Effect::Reconfigure(key, wanted) => {
                if let Some(operator) = state.operators.get(&key) {
                    tracing::info!(katalog = %key.0, operator = key.1, revision = &*wanted.revision, hash = wanted.plan.hash, "operator switches to another revision");
                    // This only passes the revision on.
                    operator.reconfigure(wanted);
                } else {
                    state.failures.reconfigure(&key, wanted);
                }
            }
            Effect::Stop(key) => match state.operators.remove(&key) {
                None if state.failures.stop(&key) => state.ledger.stopped(&key),
                // It stops once its last writes have ended.
                None => {}
                Some(operator) => {
                    state.failures.stop(&key);
                    state.stopping.insert(key.clone(), operator.unfinished());
                    self.stop(key, operator);
                }
            },
        }
    }

    fn start(
        self: &Arc<Self>,
        state: &mut SupervisorState,
        key: SlotKey,
        plans: &Plans,
        role: Role,
    ) {
        let kind = plans.wanted().plan.resource.group_kind();
        let duty = self.is_on_duty(state, &key, &kind);
        let suspended = state.ledger.is_suspended(&key.0);
        let (supervisor, failing) = (Arc::downgrade(self), key.clone());
        let failed = move |error: String| {
            if let Some(supervisor) = supervisor.upgrade() {
                supervisor.failed(failing, &error);
            }
        };
        let what = (plans.clone(), role.clone());
        let started = AssertUnwindSafe(|| {
            // An operator that failed while another plan was not available yet starts with the plan that it ran.
            let first = plans.effective().clone();
            // Its workers must not run before it is suspended.
            let operator =
                RunningOperator::start(&self.context, first, role, duty && !suspended, failed);
            if suspended {
                operator.set_suspended(true);
                operator.set_duty(duty);
            }
            if plans.effective() != plans.wanted() {
                operator.reconfigure(plans.wanted().clone());
            }
            operator
        });
        match catch_unwind(started) {
            Ok(operator) => drop(state.operators.insert(key, operator)),
            Err(panic) => self.down(state, key, &panic_text(&*panic), what, None),
        }
    }

    /// Handles the failure of an operator's driver.
    fn failed(self: &Arc<Self>, key: SlotKey, error: &str) {
        let mut state = self.state.lock();
        // A stopping operator is no longer listed: its failure does not matter.
        let Some(operator) = state.operators.remove(&key) else {
            return;
        };
        let role = state.ledger.role(&key).unwrap_or(Role::Reconciles);
        let what = (operator.plans(), role);
        self.down(&mut state, key, error, what, Some(operator));
        self.snapshot.send_replace(Arc::new(state.views()));
    }

    /// Reports an operator as failed, and restarts it once its writes have ended and its backoff has passed.
    fn down(
        self: &Arc<Self>,
        state: &mut SupervisorState,
        key: SlotKey,
        error: &str,
        what: (Plans, Role),
        operator: Option<RunningOperator>,
    ) {
        let draining = operator.is_some();
        let restart =
            (state.failures).failed(&key, error.to_owned(), what, draining, Instant::now());
        let seconds = restart.after.as_secs();
        tracing::error!(katalog = %key.0, operator = key.1, error, seconds, "operator failed; restarting it after a backoff");
        if let Some(operator) = &operator {
            state.stopping.insert(key.clone(), operator.unfinished());
        }
        let named = tasks::named(Task::OperatorRestart, format!("{}/{}", key.0, key.1));
        let task = (Arc::clone(self), key, operator);
        named.keep(Ends::freely(), task, move |(supervisor, key, operator)| {
            Box::pin(async move {
                if let Some(operator) = operator.take() {
                    operator.stop().await;
                }
                supervisor.drained(key, restart.serial);
                tokio::time::sleep(restart.after).await;
                supervisor.start_again(key, restart.serial);
            })
        });
    }

    /// Records that the writes of a failed operator have ended.
    fn drained(self: &Arc<Self>, key: &SlotKey, serial: u64) {
        let stopped = {
            let mut state = self.state.lock();
            state.stopping.remove(key);
            state.failures.drained(key, serial)
        };
        if stopped {
            self.update(|ledger| ledger.stopped(key));
        }
    }

    /// Restarts a failed operator after its backoff.
    fn start_again(self: &Arc<Self>, key: &SlotKey, serial: u64) {
        let mut state = self.state.lock();
        if let Some((plans, role)) = state.failures.due(key, serial) {
            tracing::info!(katalog = %key.0, operator = key.1, "restarting operator");
            self.start(&mut state, key.clone(), &plans, role);
            self.snapshot.send_replace(Arc::new(state.views()));
        }
    }

    fn stop(self: &Arc<Self>, key: SlotKey, operator: RunningOperator) {
        let named = tasks::named(Task::OperatorStop, format!("{}/{}", key.0, key.1));
        let (supervisor, stopped) = (Arc::clone(self), key.clone());
        let stop = async move {
            let unfinished = operator.unfinished();
            let (running, waiting) = (unfinished.running().len(), unfinished.waiting());
            tracing::info!(katalog = %key.0, operator = key.1, running, waiting, "stopping operator");
            operator.stop().await;
            tracing::info!(katalog = %key.0, operator = key.1, "operator stopped");
            supervisor.stopped(&key);
        };
        // Whatever the result, its kind must be freed.
        let supervisor = Arc::clone(self);
        named.start_or(Ends::freely(), stop, move |_| supervisor.stopped(&stopped));
    }

    fn stopped(self: &Arc<Self>, key: &SlotKey) {
        self.state.lock().stopping.remove(key);
        self.update(|ledger| ledger.stopped(key));
    }
}
