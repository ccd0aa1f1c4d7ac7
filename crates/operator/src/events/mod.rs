//! Kubernetes Events, sent off the critical path.
//!
//! ```text
//!  pass ── publish (never waits) ──► bounded channels ──► sender task ──► POST, or PATCH of a series
//!                 │ full: dropped, counted                   │ 403: a problem for a condition to report; the
//!                 ▼                                          ▼      namespace is paused for 30 s
//!          orkestra_events_dropped_total                problem()
//! ```
//!
//! Warnings are sent at once. Normal Events wait until no other request is in flight, for a short time at most: during many
//! changes the API server has more important work.
//!
//! Events with the same text about the same object are one Event with a count, as long as they occur within six minutes of each
//! other. Events are best effort: nothing waits for one, and none is retried, except for one that was refused because of a
//! missing permission, to notice when it is granted.

mod name;
mod sender;
mod series;

use std::{borrow::Cow, fmt, sync::Arc, time::Duration};

use jiff::Timestamp;
pub use k8s_openapi::api::core::v1::ObjectReference;
use orkestra_cluster::{client::flow::Flow, requests::Cluster};
use orkestra_ground::{
    Clock,
    tasks::{self, Ends, Task},
};
use orkestra_language::api::{conditions::EVENT_BYTES, names};
use prometheus::IntCounter;
use tokio::sync::{mpsc, oneshot, watch};

use crate::metrics::Metrics;

/// The queue length of Events; further ones are dropped.
pub const CAPACITY: usize = 1024;
/// The longest note that the API server accepts, in bytes.
pub const NOTE_BYTES: usize = EVENT_BYTES;
/// `reportingController` of every Event.
pub const CONTROLLER: &str = names::EVENT_CONTROLLER;

/// The namespace of Events of cluster-scoped objects. Source: client-go, `tools/events`.
const CLUSTER_NAMESPACE: &str = "default";

/// The severity of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Severity {
    /// An action was done.
    Normal,
    /// There is a problem.
    Warning,
}

/// An Event about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// The object: `apiVersion`, `kind`, `name`, `uid`, and `namespace` if it has one.
    pub regarding: ObjectReference,
    /// The severity.
    pub severity: Severity,
    /// One word in `CamelCase`: from a fixed set, or as a Katalog declares it.
    pub reason: Cow<'static, str>,
    /// For people; cut at [`NOTE_BYTES`]. Never contains values of Secrets.
    pub note: String,
}

impl Event {
    /// The Event's namespace.
    fn namespace(&self) -> &str {
        let own = self.regarding.namespace.as_deref();
        own.unwrap_or(CLUSTER_NAMESPACE)
    }
}

/// An Event with its time.
#[derive(Clone)]
struct TimedEvent {
    event: Event,
    at: Timestamp,
}

enum Message {
    Event(Box<TimedEvent>),
    Flush(oneshot::Sender<()>),
}

/// Takes Events and returns at once. Cheap to clone; the sender ends with the last clone.
#[derive(Clone)]
pub struct EventSink {
    warnings: mpsc::Sender<Message>,
    /// All other Events.
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
    /// Starts the sender on the current tokio runtime; `cluster` sends. Normal Events wait for other requests of `flow`.
    pub fn start(cluster: &Cluster, flow: Flow, metrics: &Metrics, clock: Clock) -> Self {
        let (queue, messages) = mpsc::channel(CAPACITY);
        let (warnings, first) = mpsc::channel(CAPACITY);
        let sink = Self {
            warnings,
            queue,
            clock,
            dropped: metrics.events_dropped(),
            problem: Problem::default(),
        };
        let sender = sender::Sender::new(cluster, flow, sink.dropped.clone(), sink.problem.clone());
        // Queued Events are kept over a restart; the one that was being sent is lost, which is acceptable for Events.
        let state = (sender, first, messages);
        tasks::named(Task::EventSender, "").keep(Ends::freely(), state, |state| {
            let (sender, warnings, messages) = state;
            Box::pin(sender.run(warnings, messages))
        });
        sink
    }

    /// A sink that sends nothing: every Event counts as dropped. For tests, and for use without a cluster.
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

    /// Passes the Event to the sender, or drops and counts it if the queue is full.
    pub fn publish(&self, event: Event) {
        let queue = match event.severity {
            Severity::Normal => &self.queue,
            Severity::Warning => &self.warnings,
        };
        let at = self.clock.now();
        let message = Message::Event(Box::new(TimedEvent { event, at }));
        if queue.try_send(message).is_err() {
            self.dropped.inc();
        }
    }

    /// Returns why Events are refused at the moment, with the missing permission; `None` if they are accepted.
    pub fn problem(&self) -> Option<String> {
        self.problem.get()
    }

    /// Subscribes to [`EventSink::problem`].
    pub fn problems(&self) -> watch::Receiver<Option<String>> {
        self.problem.0.subscribe()
    }

    /// Waits until all Events published before are sent, for at most `within`. For the end of a process.
    pub async fn flush(&self, within: Duration) {
        let (done, sent) = oneshot::channel();
        let all = async {
            if self.queue.send(Message::Flush(done)).await.is_ok() {
                // An error means that the sender is gone: there is nothing to wait for.
                let _ = sent.await;
            }
        };
        // Events that were not sent in time are lost, which is acceptable for Events.
        let _ = tokio::time::timeout(within, all).await;
    }
}

/// The problem of the sender, shared with the readers.
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
