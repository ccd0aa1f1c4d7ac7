//! Owns the running operators of all Katalogs of the process.
//!
//! ```text
//!  want / forget ──► Ledger ── effects ──► Operator::start, reconfigure, stop
//!                      ▲                          │ (stops last; each in its own task)
//!                      └────────── stopped ◄──────┘
//!                      └──► Snapshot: a view per entry, for status and pages
//! ```

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt;
use orkestra_core::{
    plan::{GroupKind, KatalogRef, OperatorPlan},
    reasons::KatalogReason,
};
use tokio::sync::watch;

use super::{
    directory::OperatorView,
    ledger::{Decision, Effect, Hold, Ledger, SlotKey, Wanted},
};
use crate::runtime::{
    Operator, OperatorStatus, Phase, Problem, Role, Unfinished, context::Context,
};

/// Owns the running operators.
#[derive(Debug)]
pub(crate) struct Supervisor {
    context: Arc<Context>,
    state: Mutex<State>,
    snapshot: watch::Sender<Snapshot>,
}

/// A view per entry of each Katalog that has a plan, sorted by name.
pub(crate) type Snapshot = Arc<BTreeMap<KatalogRef, Vec<OperatorView>>>;

#[derive(Debug, Default)]
struct State {
    ledger: Ledger,
    operators: BTreeMap<SlotKey, Operator>,
    /// What those that stop have not done.
    stopping: BTreeMap<SlotKey, Unfinished>,
}

/// While it lives, nothing starts in its kind.
#[derive(Debug)]
pub(crate) struct Held {
    supervisor: Arc<Supervisor>,
    kind: GroupKind,
}

/// Answer to [`Supervisor::hold`].
#[derive(Debug)]
pub(crate) enum Holding {
    /// An operator of the kind is still there: ask again at the next snapshot.
    Busy,
    /// This Katalog wants the kind.
    Claimed(KatalogRef),
    /// Yours until it is dropped.
    Held(Held),
}

impl Drop for Held {
    fn drop(&mut self) {
        self.supervisor.update(|ledger| ledger.unhold(&self.kind));
    }
}

impl Supervisor {
    /// A supervisor of nothing.
    pub(crate) fn new(context: Arc<Context>) -> Arc<Self> {
        let (snapshot, _) = watch::channel(Snapshot::default());
        Arc::new(Self {
            context,
            state: Mutex::default(),
            snapshot,
        })
    }

    /// Changes whenever an operator came, changed its plan or went; each clone has its own mark.
    pub(crate) fn snapshot(&self) -> watch::Receiver<Snapshot> {
        self.snapshot.subscribe()
    }

    /// Says what a Katalog wants from now on.
    pub(crate) fn want(self: &Arc<Self>, katalog: &KatalogRef, wanted: Wanted) {
        self.update(|ledger| ledger.want(katalog.clone(), wanted));
    }

    /// A Katalog wants nothing any more.
    pub(crate) fn forget(self: &Arc<Self>, katalog: &KatalogRef) {
        self.update(|ledger| ledger.forget(katalog));
    }

    /// Asks for a kind to be left alone, to release it.
    pub(crate) fn hold(self: &Arc<Self>, kind: &GroupKind) -> Holding {
        match self.lock().ledger.hold(kind) {
            Hold::Busy => Holding::Busy,
            Hold::Claimed(katalog) => Holding::Claimed(katalog),
            Hold::Held => Holding::Held(Held {
                supervisor: Arc::clone(self),
                kind: kind.clone(),
            }),
        }
    }

    /// Has operators begin and end their work as this process leads and does not; never ends.
    pub(crate) async fn follow_leadership(self: &Arc<Self>) {
        let mut standing = self.context.leadership.changed();
        loop {
            // Looked at after it was marked as seen: nothing is missed.
            let leads = standing.borrow_and_update().leads;
            self.update(|_| {});
            // The sender lives as long as the context.
            let _ = standing.wait_for(|now| now.leads != leads).await;
        }
    }

    /// Stops everything and waits for it, at most as long as `patience`; nothing starts from then on. Operators stop
    /// after those that depend on them, unless that takes more than half of the time. True when all writes have ended;
    /// what has not is logged by name.
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
        let state = self.lock();
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
        while !self.lock().ledger.is_idle() && snapshot.changed().await.is_ok() {}
    }

    /// Changes the ledger and does what follows from it.
    fn update(self: &Arc<Self>, change: impl FnOnce(&mut Ledger)) {
        let mut state = self.lock();
        change(&mut state.ledger);
        // A stop of an operator that never came up ends at once, which may let another start.
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
            operator.set_duty(self.is_on_duty(&state, key));
        }
        // Under the lock: of two changes at a time the view of the later one must stay.
        self.snapshot.send_replace(Arc::new(state.views()));
    }

    fn is_on_duty(&self, state: &State, key: &SlotKey) -> bool {
        self.context.leadership.standing().leads && state.ledger.is_stored(&key.0)
    }

    fn take(self: &Arc<Self>, state: &mut State, effect: Effect) {
        match effect {
            Effect::Start(key, plan, role) => {
                tracing::info!(katalog = %key.0, operator = key.1, kind = %plan.resource.group_kind(), "operator starts");
                let duty = self.is_on_duty(state, &key);
                if let Ok(operator) = catch_unwind(AssertUnwindSafe(|| {
                    Operator::start(&self.context, plan, role, duty)
                })) {
                    state.operators.insert(key, operator);
                } else {
                    tracing::error!(katalog = %key.0, operator = key.1, "operator panicked at its start");
                }
            }
            Effect::Reconfigure(key, plan) => {
                if let Some(operator) = state.operators.get(&key) {
                    tracing::info!(katalog = %key.0, operator = key.1, hash = plan.hash, "operator follows another plan");
                    if catch_unwind(AssertUnwindSafe(|| operator.reconfigure(plan))).is_err() {
                        tracing::error!(katalog = %key.0, operator = key.1, "operator panicked at a new plan");
                    }
                }
            }
            Effect::Stop(key) => match state.operators.remove(&key) {
                None => state.ledger.stopped(&key),
                Some(operator) => {
                    state.stopping.insert(key.clone(), operator.unfinished());
                    self.stop(key, operator);
                }
            },
        }
    }

    fn stop(self: &Arc<Self>, key: SlotKey, operator: Operator) {
        let supervisor = Arc::clone(self);
        tokio::spawn(async move {
            let unfinished = operator.unfinished();
            let (running, waiting) = (unfinished.running().len(), unfinished.waiting());
            tracing::info!(katalog = %key.0, operator = key.1, running, waiting, "operator stops");
            if AssertUnwindSafe(operator.stop())
                .catch_unwind()
                .await
                .is_err()
            {
                tracing::error!(katalog = %key.0, operator = key.1, "operator panicked while it stopped");
            }
            tracing::info!(katalog = %key.0, operator = key.1, "operator has stopped");
            supervisor.lock().stopping.remove(&key);
            supervisor.update(|ledger| ledger.stopped(&key));
        });
    }

    /// A panic under the lock leaves a consistent state: the ledger's changes come before anything that could panic.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn views(&self) -> BTreeMap<KatalogRef, Vec<OperatorView>> {
        let mut views: BTreeMap<KatalogRef, Vec<OperatorView>> = BTreeMap::new();
        for (plan, decision) in self.ledger.decisions() {
            views
                .entry(plan.katalog.clone())
                .or_default()
                .push(self.view(plan, decision));
        }
        views
    }

    fn view(&self, plan: Arc<OperatorPlan>, decision: Decision) -> OperatorView {
        match decision {
            Decision::Conflict(holder) => {
                let message = format!(
                    "Katalog {holder} is older and has {}; this entry takes over when it lets go",
                    plan.resource.group_kind()
                );
                let status = at_rest(KatalogReason::Conflict, message, None);
                OperatorView {
                    plan,
                    status,
                    conflict: Some(holder.to_string()),
                    told: None,
                }
            }
            Decision::Run(role) => {
                let running = self
                    .operators
                    .get(&(plan.katalog.clone(), plan.name.clone()));
                let status = running.map_or_else(|| pending(role), Operator::status);
                OperatorView {
                    plan,
                    status,
                    conflict: None,
                    told: None,
                }
            }
        }
    }
}

/// The status of an entry whose predecessor has not stopped, or whose kind is being released.
fn pending(role: Role) -> watch::Receiver<OperatorStatus> {
    let yields_to = match role {
        Role::Reconciles => None,
        Role::Yields(to) => Some(to),
    };
    at_rest(
        KatalogReason::Predecessor,
        "the operator that had this kind has not stopped yet".to_owned(),
        yields_to,
    )
}

/// The status of an entry without an operator; it never changes.
fn at_rest(
    reason: KatalogReason,
    message: String,
    yields_to: Option<String>,
) -> watch::Receiver<OperatorStatus> {
    let problems = vec![Problem { reason, message }];
    let (_, status) = watch::channel(OperatorStatus {
        phase: Phase::Waiting,
        problems,
        yields_to,
        ..OperatorStatus::default()
    });
    status
}
