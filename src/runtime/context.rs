//! What the operators of one process share.

use std::{fmt, sync::Arc};

use orkestra_core::plan::ObjectKey;
use tokio::sync::Semaphore;

use super::{
    accepted::Accepted,
    entropy::Entropy,
    operators::Operators,
    reach::Reach,
    watch::{Crds, Informers, Reports},
    wire::Wire,
};
use crate::{
    client::flow::Flow,
    events::EventSink,
    external::Client,
    lead::{self, Leadership},
    metrics::{FlowMetrics, Metrics},
};

/// Handed to every operator; nothing in it is global, so a test may run several runtimes side by side.
pub struct Context {
    /// Requests to the cluster.
    pub wire: Wire,
    /// Watches, shared by all operators.
    pub informers: Informers,
    /// The CRDs of the cluster.
    pub crds: Crds,
    /// Where jitter comes from.
    pub entropy: Entropy,
    /// Time of day, for conditions and events; durations are tokio's.
    pub clock: Clock,
    /// Where operators count.
    pub metrics: Metrics,
    /// Takes Kubernetes Events; never waits.
    pub events: EventSink,
    /// Makes calls to the outside; none unless it is replaced by one that may.
    pub external: Client,
    /// Whether this process leads; alone unless it is replaced by one of a candidate.
    pub leadership: Leadership,
    /// The operators that run, by name.
    pub operators: Operators,
    /// What accepted revisions declare.
    pub accepted: Accepted,
    /// Bounds concurrent pure passes to the cores.
    pub passes: Semaphore,
    /// The namespace of the Pod that this process runs in; none outside of a cluster.
    pub home: Option<Arc<str>>,
    /// Whether every write of a child is logged at info level, for a person who watches; at debug level otherwise.
    pub logs_writes: bool,
    /// Fault points of tests.
    pub faults: Faults,
}

impl Context {
    /// The context of a process that works through `client`, whose requests have their turns in `flow`, on the machine's
    /// clock; must be called on a tokio runtime.
    ///
    /// # Errors
    /// A metric that cannot be registered, which is a fault of its declaration.
    pub fn new(client: kube::Client, flow: &Flow) -> prometheus::Result<Self> {
        let (metrics, entropy, clock) = (Metrics::new()?, Entropy::system(), Clock::system());
        flow.count_into(FlowMetrics::new(&metrics));
        metrics.leader().set(1);
        let gauge = metrics.api_server_reachable();
        let reach = Reach::new(client.clone(), entropy.clone(), gauge);
        let wire = Wire::reaching(client.clone(), reach).in_turn(flow.clone());
        let events = EventSink::start(client, flow.clone(), &metrics, clock.clone());
        let reports = Reports::new(events.clone(), metrics.clone());
        Ok(Self {
            informers: Informers::new(wire.clone(), entropy.clone()).reporting(reports.clone()),
            crds: Crds::start(wire.clone(), entropy.clone(), reports),
            events,
            external: Client::closed(),
            leadership: Leadership::alone(lead::identity(&lead::host(), &entropy)),
            operators: Operators::default(),
            accepted: Accepted::default(),
            passes: Semaphore::new(cores()),
            home: None,
            logs_writes: false,
            faults: Faults::default(),
            wire,
            entropy,
            clock,
            metrics,
        })
    }
}

/// How many cores this process may use: so many pure passes run at a time, and one worker more.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

/// Tells the time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Arc::new(jiff::Timestamp::now))
    }

    /// A clock of the caller's.
    pub fn new(now: impl Fn() -> jiff::Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// How long until a moment; nothing where it has passed.
    pub fn until(&self, moment: jiff::Timestamp) -> std::time::Duration {
        moment
            .duration_since(self.now())
            .try_into()
            .unwrap_or_default()
    }

    /// The time.
    pub fn now(&self) -> jiff::Timestamp {
        (self.0)()
    }
}

/// Told the operator's name and the custom resource's key; it may panic.
type Fault = dyn Fn(&str, &ObjectKey) + Send + Sync;

/// Where a test may make a pass fail; empty in production.
#[derive(Clone, Default)]
pub struct Faults {
    before_pass: Option<Arc<Fault>>,
}

impl Faults {
    /// Calls `fault` with the operator's name and the custom resource's key before each pass; it may panic.
    pub fn before_pass(fault: impl Fn(&str, &ObjectKey) + Send + Sync + 'static) -> Self {
        Self {
            before_pass: Some(Arc::new(fault)),
        }
    }

    /// Runs the fault point.
    pub(crate) fn run_before_pass(&self, operator: &str, key: &ObjectKey) {
        if let Some(fault) = &self.before_pass {
            fault(operator, key);
        }
    }
}
