//! What the operators of one process share: clients, watches, metrics, the registry of operators.

pub mod accepted;
mod crds;
pub mod enforcement;
mod kinds;
pub mod operators;
pub mod rows;
mod unreadable;

use std::{fmt, sync::Arc};

use orkestra_cluster::{
    client::flow::Flow,
    reach::Reach,
    requests::Cluster,
    watch::{Informers, Reports},
};
use orkestra_compiler::compilation::CompilationRules;
use orkestra_ground::{Clock, Entropy};
use orkestra_plan::ObjectKey;
use tokio::sync::Semaphore;

pub use self::crds::Crds;
use self::{
    accepted::Accepted, enforcement::Enforcement, operators::Operators, rows::WrittenRows,
    unreadable::Unreadable,
};
use crate::{events::EventSink, external::Client, metrics::Metrics};
use orkestra_cluster::leader_election::{self, Leadership};

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
    /// The rows of operators in the status of their Katalogs.
    pub rows: WrittenRows,
    /// What Katalogs declare and the API server does not enforce.
    pub enforcement: Enforcement,
    /// Limits concurrent pure passes to the number of cores.
    pub passes: Arc<Semaphore>,
    /// The rules of this installation for the compilation of Katalogs, whatever ran before.
    pub rules: CompilationRules,
    /// The version of this program, with its commit: `1.2.3+COMMIT`.
    pub version: Arc<str>,
    /// The namespace of the Pod that this process runs in; none outside of a cluster.
    pub home: Option<Arc<str>>,
    /// Whether this process serves webhooks.
    pub webhooks: bool,
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
        let informers = Informers::new(cluster.clone(), entropy.clone()).reporting(reports);
        Ok(Self {
            crds: Crds::start(&informers),
            informers,
            events,
            external: Client::closed(),
            leadership: Leadership::alone(leader_election::identity(
                &leader_election::host(),
                &entropy,
            )),
            operators: Operators::default(),
            accepted: Accepted::default(),
            rows: WrittenRows::default(),
            enforcement: Enforcement::default(),
            passes: Arc::new(Semaphore::new(cores())),
            rules: CompilationRules {
                admission: Some(false),
                ..CompilationRules::default()
            },
            version: orkestra_ground::VERSION.into(),
            home: None,
            webhooks: false,
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
pub fn cores() -> usize {
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
