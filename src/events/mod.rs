//! Kubernetes Events, sent off the critical path.
//!
//! ```text
//!  pass ── publish (never waits) ──► bounded channels ──► sender task ──► POST, or PATCH of a series
//!                 │ full: dropped, counted                   │ 403: a problem that a condition can name; that
//!                 ▼                                          ▼      namespace rests for 30 s
//!          orkestra_events_dropped_total                problem()
//! ```
//!
//! What is wrong is told at once. What was done waits until no other request is under way, a moment for each Event at most: in
//! a storm of changes the API server has better to do.
//!
//! The same words about the same object are one Event with a count, as long as they come within six minutes of each
//! other. Events are best effort: nothing waits for one, and none is retried but for one that was refused for a missing right,
//! to notice that it is back.

mod name;
mod sender;
mod series;

use std::{fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
pub use k8s_openapi::api::core::v1::ObjectReference;
use orkestra_cluster::client::flow::Flow;
use orkestra_core::api::{conditions::EVENT_BYTES, names};
use orkestra_ground::{
    Clock,
    tasks::{self, Ends, Task},
};
use prometheus::IntCounter;
use tokio::sync::{mpsc, oneshot, watch};

use crate::metrics::Metrics;

/// Events that wait to be sent; further ones are dropped.
pub const CAPACITY: usize = 1024;
/// Longest note that the API server takes, in bytes.
pub const NOTE_BYTES: usize = EVENT_BYTES;
/// `reportingController` of every Event.
pub const CONTROLLER: &str = names::EVENT_CONTROLLER;

/// Where Events of cluster-scoped objects live. Source: client-go, `tools/events`.
const CLUSTER_NAMESPACE: &str = "default";

/// The severity of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// Something was done.
    Normal,
    /// Something is wrong.
    Warning,
}

/// What to say of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The object: `apiVersion`, `kind`, `name`, `uid`, and `namespace` where it has one.
    pub regarding: ObjectReference,
    /// How grave.
    pub severity: Severity,
    /// CamelCase, from a fixed set.
    pub reason: &'static str,
    /// For people; cut at [`NOTE_BYTES`]. Never holds values of Secrets.
    pub note: String,
}

impl Event {
    /// Where it lives.
    fn namespace(&self) -> &str {
        let own = self.regarding.namespace.as_deref();
        own.unwrap_or(CLUSTER_NAMESPACE)
    }
}

/// An Event, and when it happened.
#[derive(Clone)]
struct Happened {
    event: Event,
    at: Timestamp,
}

enum Message {
    Event(Box<Happened>),
    Flush(oneshot::Sender<()>),
}

/// Takes Events and returns at once. Cloning is cheap; the sender ends with the last clone.
#[derive(Clone)]
pub struct EventSink {
    warnings: mpsc::Sender<Message>,
    /// All else.
    queue: mpsc::Sender<Message>,
    clock: Clock,
    dropped: IntCounter,
    problem: Problem,
}

impl fmt::Debug for EventSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EventSink")
    }
}

impl EventSink {
    /// Starts the sender on the current tokio runtime. What is no warning waits for other requests of `flow`.
    pub fn start(client: kube::Client, flow: Flow, metrics: &Metrics, clock: Clock) -> Self {
        let (queue, messages) = mpsc::channel(CAPACITY);
        let (warnings, first) = mpsc::channel(CAPACITY);
        let sink = Self {
            warnings,
            queue,
            clock,
            dropped: metrics.events_dropped(),
            problem: Problem::default(),
        };
        let sender = sender::Sender::new(client, flow, sink.dropped.clone(), sink.problem.clone());
        // What waits is kept over a restart; what was being sent is lost, as Events may be.
        let state = (sender, first, messages);
        tasks::named(Task::EventSender, "").keep(Ends::freely(), state, |state| {
            let (sender, warnings, messages) = state;
            Box::pin(sender.run(warnings, messages))
        });
        sink
    }

    /// A sink that sends nothing: every Event counts as dropped. For tests, and where there is no cluster.
    pub fn disconnected(metrics: &Metrics) -> Self {
        let (queue, _) = mpsc::channel(1);
        Self {
            warnings: queue.clone(),
            queue,
            clock: Clock::system(),
            dropped: metrics.events_dropped(),
            problem: Problem::default(),
        }
    }

    /// Hands the Event to the sender, or drops and counts it when too many wait.
    pub fn publish(&self, event: Event) {
        let queue = match event.severity {
            Severity::Normal => &self.queue,
            Severity::Warning => &self.warnings,
        };
        let at = self.clock.now();
        let message = Message::Event(Box::new(Happened { event, at }));
        if queue.try_send(message).is_err() {
            self.dropped.inc();
        }
    }

    /// Why Events are refused at the moment, and the right that is missing; none while all is well.
    pub fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// Changes when [`EventSink::problem`] does.
    pub fn problems(&self) -> watch::Receiver<Option<String>> {
        self.problem.0.subscribe()
    }

    /// Waits until what was published before has been sent, at most so long. For the end of a process.
    pub async fn flush(&self, within: Duration) {
        let (done, sent) = oneshot::channel();
        let all = async {
            if self.queue.send(Message::Flush(done)).await.is_ok() {
                // An error says that the sender is gone: nothing is left to wait for.
                let _ = sent.await;
            }
        };
        // What was not sent in time is lost, as Events may be.
        let _ = tokio::time::timeout(within, all).await;
    }
}

/// What is wrong with the sending, shared with the readers.
#[derive(Clone)]
struct Problem(Arc<watch::Sender<Option<String>>>);

impl Default for Problem {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Problem {
    fn get(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    fn set(&self, problem: Option<String>) {
        self.0.send_if_modified(|known| {
            let differs = *known != problem;
            *known = problem;
            differs
        });
    }
}
