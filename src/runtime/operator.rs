//! The operator of one CRD: a task tree that starts, follows its plan and stops without a trace.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use orkestra_core::{
    plan::{ObjectKey, Plans, Revised},
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
use crate::{
    metrics::OperatorMetrics,
    tasks::{self, Ends, Task},
};

/// How often passes are looked at that are still running when their operator stops.
const LOOK: Duration = Duration::from_millis(50);

/// A running operator. Dropping it without [`Operator::stop`] ends its tasks too, but nobody waits for them.
pub struct Operator {
    /// Cancelled before anything else goes: what ends then was asked to.
    stop: DropGuard,
    shared: Arc<Shared>,
    status: watch::Receiver<OperatorStatus>,
    driver: JoinHandle<()>,
    publisher: JoinHandle<()>,
    waiter: JoinHandle<()>,
    autoscaler: JoinHandle<()>,
    listed: Entered,
    queue: Queue<ObjectKey>,
    duty: watch::Sender<bool>,
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

/// Something that keeps an operator from its work, or from a part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Why, in a word.
    pub reason: KatalogReason,
    /// What is wrong, and how to fix it.
    pub message: String,
}

/// What an operator says of itself; published when it changes, at most a few times a second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorStatus {
    /// Which plan it runs, and which one it is to run; none until it has reported for the first time.
    pub plans: Option<Plans>,
    /// How far it has come with the plan that it runs.
    pub phase: Phase,
    /// What is wrong with the plan that it runs, the gravest first; while it runs none, what it waits for.
    pub problems: Vec<Problem>,
    /// What the wanted plan waits for while an earlier one still runs; empty where only its caches fill.
    pub pending: Vec<Problem>,
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
    /// Those among the failures that the custom resource's own input caused.
    pub own_failures: u64,
    /// Failed ones since the last success, without those that the custom resource's own input caused.
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

impl OperatorStatus {
    /// Whether `wanted` is what it runs.
    pub fn runs(&self, wanted: &Revised) -> bool {
        let running = self.plans.as_ref().and_then(Plans::running);
        running == Some(wanted)
    }

    /// The plan that it runs in place of `wanted`; none where it runs that one, or none at all.
    pub fn runs_instead_of(&self, wanted: &Revised) -> Option<&Revised> {
        let running = self.plans.as_ref()?.running()?;
        (running != wanted).then_some(running)
    }

    /// Everything that is wrong: first what the wanted plan waits for, then what hinders the one that runs.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.pending.iter().chain(&self.problems)
    }

    /// Whether a pass has shown that the operator works: it succeeded, or failed only for its custom resource's own input.
    pub fn has_succeeded(&self) -> bool {
        self.passes > self.failures.saturating_sub(self.own_failures)
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans = self.shared.plans.borrow();
        f.debug_tuple("Operator")
            .field(&plans.wanted().plan.name)
            .finish()
    }
}

impl Operator {
    /// Starts it in a role, which it keeps for life, with workers or without ([`Operator::set_duty`]). Returns at once;
    /// [`Operator::status`] tells how it goes. If its driver fails, `failed` is given the error, once: the operator does nothing
    /// any more, and is to be stopped.
    pub fn start(
        context: &Arc<Context>,
        wanted: Revised,
        role: Role,
        duty: bool,
        failed: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let plan = wanted.plan.clone();
        let name = plan.full_name();
        tasks::fault_point("operator-start", &name);
        let metrics = OperatorMetrics::new(&context.metrics, &plan);
        let queue = Queue::new(context.entropy.clone());
        // Before anything could be taken of it.
        queue.hold(!plan.depends_on.is_empty());
        queue.set_backoff(plan.queue.backoff);
        let shared = Shared::new(context.clone(), role, metrics, queue.clone(), wanted);
        let shared = Arc::new(shared);
        let measured: Weak<Shared> = Arc::downgrade(&shared);
        context.metrics.at_scrape(measured);
        if !duty {
            shared.stand_by();
        }
        // Until its driver runs, nobody is told that the CRD is missing.
        let crd = context.crds.definition(&plan.resource);
        if crd.is_some_and(|crd| crd.serves(&plan.resource.version)) {
            shared.set_phase(Phase::Starting);
        }
        let (duty, on_duty) = watch::channel(duty);
        let plans = || shared.plans.subscribe();
        let (sender, status) = watch::channel(OperatorStatus {
            plans: Some(plans().borrow().clone()),
            ..OperatorStatus::default()
        });
        let listed = Operators::enter(&shared, status.clone());
        let stop = CancellationToken::new();
        let named = |task| tasks::named(task, &name);
        let with = |stop: &CancellationToken| (shared.clone(), plans(), stop.clone());
        let told = (with(&stop), sender);
        let publisher = named(Task::Publisher).keep(Ends::with(&stop), told, |told| {
            let ((shared, plans, stop), sender) = told.clone();
            Box::pin(publish(shared, plans, sender, stop))
        });
        let waits = (with(&stop), depends::Started::default());
        let waiter = named(Task::Waiter).keep(Ends::with(&stop), waits, |waits| {
            let ((shared, plans, stop), started) = waits.clone();
            Box::pin(depends::follow(shared, plans, started, stop))
        });
        // One that writes nothing has nothing to scale, and ends at once.
        let ends = Ends::freely_or_with(&stop);
        let autoscaler = named(Task::Autoscaler).keep(ends, with(&stop), |scaled| {
            let (shared, plans, stop) = scaled.clone();
            Box::pin(autoscale::follow(shared, plans, stop))
        });
        let driver = Driver {
            shared: shared.clone(),
            plans: plans(),
            duty: on_duty,
            stop: stop.clone(),
        };
        let driver = named(Task::Driver).start_or(Ends::with(&stop), driver.run(), failed);
        Self {
            stop: stop.drop_guard(),
            shared,
            status,
            driver,
            publisher,
            waiter,
            autoscaler,
            listed,
            queue,
            duty,
        }
    }

    /// Follows another plan of the same name and group-kind with the least disturbance: a template or status change
    /// swaps the plan and requeues, a worker count resizes, a version restarts the informer. Equal plans change nothing.
    /// Until everything that the plan needs is available, the plan that runs works on.
    pub fn reconfigure(&self, wanted: Revised) {
        self.shared.plans.send_modify(|plans| plans.want(wanted));
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

    /// What it runs, and what it is to run.
    pub fn plans(&self) -> Plans {
        self.shared.plans.borrow().clone()
    }

    /// What it says of itself.
    pub fn status(&self) -> watch::Receiver<OperatorStatus> {
        self.status.clone()
    }

    /// Stops it: takes no new keys, waits for writes in flight, takes its metric series out of the registry.
    pub async fn stop(self) {
        let Self {
            shared,
            status: _,
            driver,
            publisher,
            waiter,
            autoscaler,
            listed,
            queue,
            duty: _,
            stop,
        } = self;
        drop(listed);
        drop(stop);
        for task in [driver, waiter, autoscaler, publisher] {
            // One that failed has been reported.
            let _ = task.await;
        }
        // A driver that failed has not waited for its workers.
        while !queue.running().is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        drop(shared);
    }
}
