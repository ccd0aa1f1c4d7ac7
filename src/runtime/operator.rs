//! The operator of one CRD: a task tree that starts, follows its plan and stops without a trace.

use std::{
    fmt,
    sync::{Arc, Weak},
};

use orkestra_core::{
    plan::{ObjectKey, OperatorPlan},
    reasons::KatalogReason,
};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    autoscale,
    context::Context,
    depends,
    driver::Driver,
    health::Degraded,
    operators::{Entered, Operators},
    publish::publish,
    queue::Queue,
    shared::Shared,
};
use crate::metrics::OperatorMetrics;

/// A running operator. Dropping it without [`Operator::stop`] ends its tasks too, but nobody waits for them.
pub struct Operator {
    plans: watch::Sender<Arc<OperatorPlan>>,
    status: watch::Receiver<OperatorStatus>,
    driver: JoinHandle<()>,
    publisher: JoinHandle<()>,
    waiter: JoinHandle<()>,
    autoscaler: JoinHandle<()>,
    listed: Entered,
    queue: Queue<ObjectKey>,
    duty: watch::Sender<bool>,
    stop: DropGuard,
}

/// What an operator has not done, also while it stops.
#[derive(Clone, Debug)]
pub struct Unfinished(Queue<ObjectKey>);

impl Unfinished {
    /// Custom resources over which a pass runs, sorted.
    pub fn running(&self) -> Vec<ObjectKey> {
        let mut keys = self.0.running();
        keys.sort();
        keys
    }

    /// How many wait for a pass.
    pub fn waiting(&self) -> usize {
        self.0.depth() + self.0.delayed()
    }
}

/// What an operator does beside the operators of other versions of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reconciles: of the versions of a kind, exactly one does.
    Reconciles,
    /// It has an informer, a queue and metrics, and writes nothing: the entry of this name reconciles.
    Yields(String),
}

/// How far an operator has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It waits for something outside: its CRD, a right, a claim.
    #[default]
    Waiting,
    /// Its caches fill.
    Starting,
    /// Its caches are filled, and its workers rest: another process leads.
    Standby,
    /// Its workers run.
    Running,
    /// Its CRD is being deleted: it runs deletions only.
    Deleting,
}

/// Something that keeps an operator from its work, or a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Why, in a word.
    pub reason: KatalogReason,
    /// What, and the mend.
    pub message: String,
}

/// What an operator says of itself; published when it changes, at most a few times a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorStatus {
    /// How far it has come.
    pub phase: Phase,
    /// Why it waits, and what else is wrong, the gravest first.
    pub problems: Vec<Problem>,
    /// Workers at the moment.
    pub workers: usize,
    /// Those among them that stay when nothing is left to do.
    pub steady_workers: usize,
    /// Custom resources known.
    pub instances: usize,
    /// Custom resources whose last pass left them ready.
    pub ready: usize,
    /// Custom resources that `reconcileGate` holds back.
    pub gated: usize,
    /// Passes since the start.
    pub passes: u64,
    /// Failed ones among them.
    pub failures: u64,
    /// Failed ones since the last success.
    pub consecutive_failures: u64,
    /// Since when and why it is degraded by failed passes; none while it is well.
    pub degraded: Option<Degraded>,
    /// The last failure's message; kept after recovery.
    pub last_error: Option<String>,
    /// When the last pass ended.
    pub last_pass: Option<jiff::Timestamp>,
    /// When its workers started.
    pub started_at: Option<jiff::Timestamp>,
    /// Whether an autoscaler's `do` counts at the moment.
    pub autoscaled: bool,
    /// Keys in the queue.
    pub queue_depth: usize,
    /// The depth that counts as a full queue at the moment; 0 is none.
    pub queue_max_depth: u32,
    /// Which version's entry reconciles, when this one does not: its name.
    pub yields_to: Option<String>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Operator").field(&self.plan().name).finish()
    }
}

impl Operator {
    /// Starts it in a role, which it keeps for life, with workers or without ([`Operator::set_duty`]). Returns at once;
    /// [`Operator::status`] tells how it goes.
    pub fn start(context: &Arc<Context>, plan: Arc<OperatorPlan>, role: Role, duty: bool) -> Self {
        let metrics = OperatorMetrics::new(&context.metrics, &plan);
        let queue = Queue::new(context.entropy.clone());
        // Before anything could be taken of it.
        queue.hold(!plan.depends_on.is_empty());
        queue.set_backoff(plan.queue.backoff);
        let shared = Shared::new(context.clone(), role, metrics, queue.clone(), &plan);
        let shared = Arc::new(shared);
        let measured: Weak<Shared> = Arc::downgrade(&shared);
        context.metrics.at_scrape(measured);
        if !duty {
            shared.stand_by();
        }
        // Until its driver runs, nobody is told that the CRD is missing.
        let kind = plan.resource.group_kind();
        let crd = context.crds.get(&kind);
        if crd.is_some_and(|crd| crd.serves(&plan.resource.version)) {
            shared.set_phase(Phase::Starting);
        }
        let (duty, on_duty) = watch::channel(duty);
        let (plans, plan) = watch::channel(plan);
        let (sender, status) = watch::channel(OperatorStatus::default());
        let listed = Operators::enter(&shared, plan.clone(), status.clone());
        let stop = CancellationToken::new();
        let publisher = tokio::spawn(publish(shared.clone(), plan.clone(), sender, stop.clone()));
        let waiter = tokio::spawn(depends::follow(shared.clone(), plan.clone(), stop.clone()));
        let autoscaler = tokio::spawn(autoscale::follow(
            shared.clone(),
            plan.clone(),
            stop.clone(),
        ));
        let driver = tokio::spawn(
            Driver {
                shared,
                plans: plan,
                duty: on_duty,
                stop: stop.clone(),
            }
            .run(),
        );
        Self {
            plans,
            status,
            driver,
            publisher,
            waiter,
            autoscaler,
            listed,
            queue,
            duty,
            stop: stop.drop_guard(),
        }
    }

    /// Follows another plan of the same name and group-kind with the least disturbance: a template or status change
    /// swaps the plan and requeues, a worker count resizes, a version restarts the informer. Equal plans change nothing.
    pub fn reconfigure(&self, plan: Arc<OperatorPlan>) {
        self.plans.send_replace(plan);
    }

    /// Says whether it is to work. One that is not keeps its caches warm and writes nothing; keys gather in its queue.
    pub fn set_duty(&self, duty: bool) {
        self.duty
            .send_if_modified(|before| std::mem::replace(before, duty) != duty);
    }

    /// What it has not done, live.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished(self.queue.clone())
    }

    /// The plan it follows.
    pub fn plan(&self) -> Arc<OperatorPlan> {
        self.plans.borrow().clone()
    }

    /// What it says of itself.
    pub fn status(&self) -> watch::Receiver<OperatorStatus> {
        self.status.clone()
    }

    /// Stops it: takes no new keys, waits for writes in flight, takes its metric series out of the registry.
    pub async fn stop(self) {
        let Self {
            plans,
            status: _,
            driver,
            publisher,
            waiter,
            autoscaler,
            listed,
            queue: _,
            duty: _,
            stop,
        } = self;
        drop(listed);
        drop(stop);
        for task in [driver, waiter, autoscaler, publisher] {
            if let Err(error) = task.await {
                tracing::error!(operator = %plans.borrow().name, error = %error, "task of an operator ended badly");
            }
        }
    }
}
