//! What the operators of one process share: clients, watches, metrics, the registry of operators.

pub mod accepted;
mod kinds;
pub mod operators;
mod unreadable;

use std::{fmt, sync::Arc};

use orkestra_cluster::{
    client::flow::Flow,
    reach::Reach,
    requests::Cluster,
    watch::{Crds, Informers, Reports},
};
use orkestra_core::plan::{ObjectKey, policy::ChildPolicy};
use orkestra_ground::{Clock, Entropy};
use tokio::sync::Semaphore;

use self::{accepted::Accepted, operators::Operators, unreadable::Unreadable};
use crate::{
    events::EventSink,
    external::Client,
    lead::{self, Leadership},
    metrics::Metrics,
};

/// Passed to every operator. Nothing in it is global, so a test can run several runtimes side by side.
pub struct Context {
    /// Requests to the cluster.
    pub cluster: Cluster,
    /// Watches, shared by all operators.
    pub informers: Informers,
    /// The CRDs of the cluster.
    pub crds: Crds,
    /// The source of jitter.
    pub entropy: Entropy,
    /// The wall clock, for conditions and events; durations use tokio's clock.
    pub clock: Clock,
    /// The metrics of operators.
    pub metrics: Metrics,
    /// Sends Kubernetes Events; never blocks.
    pub events: EventSink,
    /// Makes external calls. The default makes none; replace it by a client that may.
    pub external: Client,
    /// Whether this process leads. The default assumes a single process; replace it for a leader election candidate.
    pub leadership: Leadership,
    /// The running operators, by name.
    pub operators: Operators,
    /// The declarations of accepted revisions.
    pub accepted: Accepted,
    /// Limits concurrent pure passes to the number of cores.
    pub passes: Arc<Semaphore>,
    /// The sensitive children that Katalogs in the cluster may declare.
    pub children: ChildPolicy,
    /// The namespace of the Pod that this process runs in; none outside of a cluster.
    pub home: Option<Arc<str>>,
    /// Whether rules apply at admission where a Katalog does not say so.
    pub admission: bool,
    /// Whether every write of a child is logged at info level, for a person who watches; at debug level otherwise.
    pub logs_writes: bool,
    /// Fault points for tests.
    pub faults: Faults,
}

impl Context {
    /// Creates the context of a process that uses `client`, whose requests are ordered by `flow`, with the system clock. Must
    /// be called on a tokio runtime.
    ///
    /// # Errors
    /// A metric cannot be registered, which is a fault of its declaration.
    pub fn new(client: kube::Client, flow: &Flow) -> prometheus::Result<Self> {
        let (metrics, entropy, clock) = (Metrics::new()?, Entropy::system(), Clock::system());
        flow.count_into(metrics.flow());
        metrics.leader().set(1);
        let gauge = metrics.api_server_reachable();
        let reach = Reach::new(client.clone(), entropy.clone(), gauge);
        let cluster = Cluster::reaching(client, reach).in_turn(flow.clone());
        let events = EventSink::start(&cluster, flow.clone(), &metrics, clock.clone());
        let reports = Reports::new(Unreadable::new(events.clone(), metrics.clone()));
        Ok(Self {
            informers: Informers::new(cluster.clone(), entropy.clone()).reporting(reports.clone()),
            crds: Crds::start(cluster.clone(), entropy.clone(), reports),
            events,
            external: Client::closed(),
            leadership: Leadership::alone(lead::identity(&lead::host(), &entropy)),
            operators: Operators::default(),
            accepted: Accepted::default(),
            passes: Arc::new(Semaphore::new(cores())),
            children: ChildPolicy::All,
            home: None,
            admission: false,
            logs_writes: false,
            faults: Faults::default(),
            cluster,
            entropy,
            clock,
            metrics,
        })
    }
}

/// Returns how many cores this process may use: that many pure passes run at a time, with one more worker.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Context")
    }
}

/// Called with the operator's name and the custom resource's key; it may panic.
type Fault = dyn Fn(&str, &ObjectKey) + Send + Sync;

/// A place where a test can make a pass fail; empty in production.
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
