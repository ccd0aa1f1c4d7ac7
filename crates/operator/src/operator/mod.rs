//! The operator of one CRD: a task tree that starts, follows its plan, and stops without leaving anything behind.
//!
//! ```text
//!  driver ── kinds, bind ──► BoundPlan ── swap ──► work: workers take keys from the queue, a pass for each
//!  source_states ──► the driver queues all custom resources     depends ──► holds the queue
//!  autoscale ──► capacity ──► the driver resizes the workers     publish ──► OperatorStatus
//! ```

mod autoscale;
mod bind;
mod depends;
mod driver;
mod kinds;
mod permissions;
mod publish;
mod source_states;
mod work;

use std::{
    fmt,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use orkestra_ground::tasks::{self, Ends, Task};
use orkestra_plan::{ObjectKey, OperatorPlan, Plans, Revised};
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::{driver::Driver, publish::publish};
use crate::{
    context::{
        Context,
        operators::{ListedOperator, Operators},
    },
    metrics::OperatorMetrics,
    queue::WorkQueue,
    shared::Shared,
    status::{OperatorStatus, Phase, Role},
};

/// The interval at which passes are checked that still run when their operator stops.
const LOOK: Duration = Duration::from_millis(50);

/// A running operator. Dropping it without [`RunningOperator::stop`] ends its tasks too, but does not wait for them.
pub struct RunningOperator {
    /// Dropped before the other fields: tasks that end then were asked to.
    stop: DropGuard,
    shared: Arc<Shared>,
    status: watch::Receiver<OperatorStatus>,
    tasks: OperatorTasks,
    listed: ListedOperator,
    queue: WorkQueue<ObjectKey>,
    duty: watch::Sender<bool>,
}

/// The tasks of an operator.
struct OperatorTasks {
    driver: JoinHandle<()>,
    publisher: JoinHandle<()>,
    waiter: JoinHandle<()>,
    /// Started with the first plan that scales the operator itself.
    autoscaler: OnceLock<JoinHandle<()>>,
}

/// The unfinished work of an operator, also while it stops.
#[derive(Clone, Debug)]
pub struct Unfinished(WorkQueue<ObjectKey>);

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

impl fmt::Debug for RunningOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans = self.shared.plans.borrow();
        f.debug_tuple("RunningOperator")
            .field(&plans.wanted().plan.name)
            .finish()
    }
}

impl OperatorTasks {
    /// Starts the tasks of the operator `name`; they end when `stop` is cancelled. If the driver fails, `failed` is called.
    fn start(
        shared: &Arc<Shared>,
        (name, stop): (&str, &CancellationToken),
        (sender, duty): (watch::Sender<OperatorStatus>, watch::Receiver<bool>),
        failed: impl FnOnce(String) + Send + 'static,
    ) -> Self {
        let plans = || shared.plans.subscribe();
        let named = |task| tasks::named(task, name);
        let publishing = (shared.clone(), plans(), sender, stop.clone());
        let publisher = named(Task::Publisher).keep(Ends::with(stop), publishing, |publishing| {
            let (shared, plans, sender, stop) = publishing;
            Box::pin(publish(shared, plans, sender, stop))
        });
        let started = depends::Started::default();
        let waits = (shared.clone(), plans(), started, stop.clone());
        let waiter = named(Task::Waiter).keep(Ends::with(stop), waits, |waits| {
            let (shared, plans, started, stop) = waits;
            Box::pin(depends::follow(shared, plans, started, stop))
        });
        let driver = Driver {
            shared: shared.clone(),
            plans: plans(),
            duty,
            stop: stop.clone(),
        };
        let driver = named(Task::Driver).start_or(Ends::with(stop), driver.run(), failed);
        Self {
            driver,
            publisher,
            waiter,
            autoscaler: OnceLock::new(),
        }
    }

    /// Starts the autoscaler, if `plan` has one and the operator writes anything. It runs until `stop` is cancelled.
    fn scale(&self, shared: &Arc<Shared>, plan: &OperatorPlan, stop: &CancellationToken) {
        if plan.autoscale.is_none() || shared.role != Role::Reconciles {
            return;
        }
        self.autoscaler.get_or_init(|| {
            let scaled = (shared.clone(), shared.plans.subscribe(), stop.clone());
            let task = tasks::named(Task::Autoscaler, plan.full_name());
            task.keep(Ends::with(stop), scaled, |(shared, plans, stop)| {
                Box::pin(autoscale::follow(shared, plans, stop))
            })
        });
    }
}

impl RunningOperator {
    /// Starts the operator in a fixed role, with workers or without ([`RunningOperator::set_duty`]). Returns immediately;
    /// [`RunningOperator::status`] reports the progress. If its driver fails, `failed` is called once with the error: the
    /// operator does nothing any more and should be stopped.
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
        let queue = WorkQueue::new(context.entropy.clone());
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
        // Until its driver runs, no status reports that the CRD is missing.
        let crd = context.crds.definition(&plan.resource);
        if crd.is_some_and(|crd| crd.serves(&plan.resource.version)) {
            shared.set_phase(Phase::Starting);
        }
        let (duty, on_duty) = watch::channel(duty);
        let (sender, status) = watch::channel(OperatorStatus {
            plans: Some(shared.plans.borrow().clone()),
            ..OperatorStatus::default()
        });
        let live = Arc::downgrade(&shared);
        let plans = shared.plans.subscribe();
        let listed = Operators::enter(context, plans, status.clone(), live);
        let stop = CancellationToken::new();
        let tasks = OperatorTasks::start(&shared, (&name, &stop), (sender, on_duty), failed);
        tasks.scale(&shared, &plan, &stop);
        Self {
            stop: stop.drop_guard(),
            shared,
            status,
            tasks,
            listed,
            queue,
            duty,
        }
    }

    /// Switches to another plan of the same name and group-kind with the least disruption: a template or status change swaps
    /// the plan and requeues, a worker count resizes, a version restarts the informer. An equal plan changes nothing. Until
    /// everything that the plan needs is available, the running plan stays in force.
    pub fn reconfigure(&self, wanted: Revised) {
        self.tasks
            .scale(&self.shared, &wanted.plan, self.stop.token());
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
            tasks:
                OperatorTasks {
                    driver,
                    publisher,
                    waiter,
                    autoscaler,
                },
            listed,
            queue,
            duty: _,
            stop,
        } = self;
        drop(listed);
        drop(stop);
        let tasks = [driver, waiter, publisher].into_iter();
        for task in tasks.chain(autoscaler.into_inner()) {
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
