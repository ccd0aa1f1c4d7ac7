//! The operator of one CRD: a task tree that starts, follows its plan, and stops without leaving anything behind.

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use orkestra_core::{
    plan::{ObjectKey, Plans, Revised},
    reasons::KatalogReason,
};
use orkestra_ground::tasks::{self, Ends, Task};
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

/// The interval at which passes are checked that still run when their operator stops.
const LOOK: Duration = Duration::from_millis(50);

/// A running operator. Dropping it without [`Operator::stop`] ends its tasks too, but does not wait for them.
pub struct Operator {
    /// Dropped before the other fields: tasks that end then were asked to.
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

/// The unfinished work of an operator, also while it stops.
#[derive(Clone, Debug)]
pub struct Unfinished(Queue<ObjectKey>);

impl Unfinished {
    /// Returns the custom resources over which a pass runs, sorted.
    pub fn running(&self) -> Vec<ObjectKey> {
        let mut keys = self.0.running();
        keys.sort();
        keys
    }

    /// Returns how many custom resources wait for a pass.
    pub fn waiting(&self) -> usize {
        self.0.depth() + self.0.delayed()
    }
}

/// The role of an operator among the operators of other versions of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// It reconciles: exactly one of the versions of a kind does.
    Reconciles,
    /// It has an informer, a queue and metrics, and writes nothing: the entry of this name reconciles instead.
    Yields(String),
}

/// The progress of an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// It waits for something external: its CRD, a permission, a claim.
    #[default]
    Waiting,
    /// Its caches are filling.
    Starting,
    /// Its caches are filled, and its workers are stopped: another process leads.
    Standby,
    /// Its workers run.
    Running,
    /// Its CRD is being deleted: it runs deletions only.
    Deleting,
}

/// Something that prevents all or part of an operator's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The reason, in one word.
    pub reason: KatalogReason,
    /// The problem, and its fix.
    pub message: String,
}

/// The status of an operator, published when it changes, at most a few times per second.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OperatorStatus {
    /// The running plan and the wanted plan; none before the first report.
    pub plans: Option<Plans>,
    /// The progress of the running plan.
    pub phase: Phase,
    /// The problems of the running plan, most severe first; if none runs, what the operator waits for.
    pub problems: Vec<Problem>,
    /// What the wanted plan waits for while an earlier one still runs; empty if only its caches are filling.
    pub pending: Vec<Problem>,
    /// Whether it runs no plan, and cannot before a permission is granted or a CRD is applied.
    pub is_blocked: bool,
    /// Current number of workers.
    pub workers: usize,
    /// Workers that stay when nothing is left to do.
    pub steady_workers: usize,
    /// Custom resources known.
    pub instances: usize,
    /// Custom resources whose last pass left them ready.
    pub ready: usize,
    /// Custom resources that `reconcileGate` holds back.
    pub gated: usize,
    /// Passes since the start.
    pub passes: u64,
    /// Failed passes.
    pub failures: u64,
    /// Failures that the custom resource's own input caused.
    pub own_failures: u64,
    /// Failed passes since the last success, without those that the custom resource's own input caused.
    pub consecutive_failures: u64,
    /// Since when and why failed passes make it degraded; none if it is not degraded.
    pub degraded: Option<Degraded>,
    /// The last failure's message; kept after recovery.
    pub last_error: Option<String>,
    /// When the last pass ended.
    pub last_pass: Option<jiff::Timestamp>,
    /// When its workers started.
    pub started_at: Option<jiff::Timestamp>,
    /// Whether an autoscaler's `do` is in effect.
    pub autoscaled: bool,
    /// Keys in the queue.
    pub queue_depth: usize,
    /// The queue depth that counts as full at the moment; 0 disables this.
    pub queue_max_depth: u32,
    /// Whether it is suspended: it processes deletions only.
    pub suspended: bool,
    /// The name of the other version's entry that reconciles, if this one does not.
    pub yields_to: Option<String>,
}

impl OperatorStatus {
    /// True if it runs `wanted`.
    pub fn runs(&self, wanted: &Revised) -> bool {
        let running = self.plans.as_ref().and_then(Plans::running);
        running == Some(wanted)
    }

    /// Returns the plan that it runs in place of `wanted`; none if it runs that one, or none at all.
    pub fn runs_instead_of(&self, wanted: &Revised) -> Option<&Revised> {
        let running = self.plans.as_ref()?.running()?;
        (running != wanted).then_some(running)
    }

    /// Returns all problems: first what the wanted plan waits for, then the problems of the running one.
    pub fn all_problems(&self) -> impl Iterator<Item = &Problem> {
        self.pending.iter().chain(&self.problems)
    }

    /// True if a pass has shown that the operator works: it succeeded, or failed only because of its custom resource's own
    /// input.
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
    /// Starts the operator in a fixed role, with workers or without ([`Operator::set_duty`]). Returns immediately;
    /// [`Operator::status`] reports the progress. If its driver fails, `failed` is called once with the error: the operator
    /// does nothing any more and should be stopped.
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
        // Held before any key can be taken.
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
        // An operator that writes nothing has nothing to scale: the autoscaler ends immediately.
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

    /// Switches to another plan of the same name and group-kind with the least disruption: a template or status change swaps
    /// the plan and requeues, a worker count resizes, a version restarts the informer. An equal plan changes nothing. Until
    /// everything that the plan needs is available, the running plan stays in force.
    pub fn reconfigure(&self, wanted: Revised) {
        self.shared.plans.send_modify(|plans| plans.want(wanted));
    }

    /// Suspends or resumes it: a suspended operator keeps its caches warm and processes deletions only. A pass that runs
    /// finishes.
    pub fn set_suspended(&self, suspended: bool) {
        self.shared.suspend(suspended);
    }

    /// Sets whether it works. An operator that does not work keeps its caches warm and writes nothing; keys collect in its
    /// queue.
    pub fn set_duty(&self, duty: bool) {
        self.duty
            .send_if_modified(|before| std::mem::replace(before, duty) != duty);
    }

    /// Returns a live view of its unfinished work.
    pub fn unfinished(&self) -> Unfinished {
        Unfinished(self.queue.clone())
    }

    /// Returns the running plan and the wanted plan.
    pub fn plans(&self) -> Plans {
        self.shared.plans.borrow().clone()
    }

    /// Returns its live status.
    pub fn status(&self) -> watch::Receiver<OperatorStatus> {
        self.status.clone()
    }

    /// Stops the operator: takes no new keys, waits for writes in flight, removes its metric series from the registry.
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
            // A failed task has been reported already.
            let _ = task.await;
        }
        // A failed driver has not waited for its workers.
        while !queue.running().is_empty() {
            tokio::time::sleep(LOOK).await;
        }
        drop(shared);
    }
}
