//! The requests in flight of one process: as many as the server takes, in fair shares.
//!
//! ```text
//!  request ─► Flow::turn ─► in line (shares) ─► its turn (limit) ─► sent ─► response: 429, 503, duration
//!                                                    ▲                          │
//!                                                    └──────────────────────────┘
//! ```
//!
//! No request is dropped: it waits. Watches are not counted, since they are long-lived; nor are Leases, since a leader that waits
//! for its turn could lose its lease.

mod layer;
mod limit;
mod metrics;
mod shares;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, OnceLock},
};

use orkestra_ground::tasks::{self, Ends, Task};
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep_until},
};

pub use self::{layer::FlowLayer, metrics::FlowMetrics, shares::Share};
use self::{
    limit::{Limit, ResponseSignal},
    shares::{QueuePosition, Shares},
};

/// Every counted request of one process. Cheap to clone; clones share it.
#[derive(Clone)]
pub struct Flow(Arc<Inner>);

struct Inner {
    state: Mutex<FlowState>,
    metrics: OnceLock<FlowMetrics>,
    /// Notified when no request is in flight.
    idle: Notify,
    /// Draws from 0 to 1, to spread the ends of pauses.
    random: Box<dyn Fn() -> f64 + Send + Sync>,
}

struct FlowState {
    limit: Limit,
    shares: Shares,
    waiting: HashMap<QueuePosition, oneshot::Sender<()>>,
    /// The pause whose end a task waits for.
    awaited: Option<Instant>,
}

impl fmt::Debug for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.state.lock();
        f.debug_struct("Flow")
            .field("limit", &state.limit.current())
            .field("in_flight", &state.shares.in_flight())
            .finish_non_exhaustive()
    }
}

impl Flow {
    /// Nothing in flight. `random` draws numbers from 0 to 1.
    pub fn new(random: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            state: Mutex::new(FlowState {
                limit: Limit::new(),
                shares: Shares::default(),
                waiting: HashMap::new(),
                awaited: None,
            }),
            metrics: OnceLock::new(),
            idle: Notify::new(),
            random: Box::new(random),
        }))
    }

    /// Counts into `metrics` from now on; later calls have no effect.
    pub fn count_into(&self, metrics: FlowMetrics) {
        if self.0.metrics.set(metrics).is_ok() {
            self.publish(&self.0.state.lock());
        }
    }

    /// Waits for the turn of a request of `share`. May be cancelled at any time.
    pub async fn turn(&self, share: &Share) -> RequestPermit {
        let asked = Instant::now();
        let (sender, receiver) = oneshot::channel();
        let mut waiting = QueuedRequest {
            flow: self.clone(),
            share: share.clone(),
            ticket: {
                let mut state = self.0.state.lock();
                let ticket = state.shares.ask(share);
                state.waiting.insert(ticket, sender);
                self.admit_waiting(&mut state);
                Some(ticket)
            },
        };
        // The sender is kept until it is used.
        let _ = receiver.await;
        waiting.ticket = None;
        let started = Instant::now();
        if let Some(metrics) = self.0.metrics.get() {
            metrics.waited(started.saturating_duration_since(asked));
        }
        RequestPermit(Arc::new(Permit {
            flow: self.clone(),
            share: share.clone(),
            started,
            heard: OnceLock::new(),
        }))
    }

    /// Waits until no request is in flight, for work that must not compete with requests.
    pub async fn idle(&self) {
        let idle = self.0.idle.notified();
        if self.0.state.lock().shares.in_flight() > 0 {
            idle.await;
        }
    }

    /// Starts every request that may start.
    fn admit_waiting(&self, state: &mut FlowState) {
        let limit = state.limit.at(Instant::now());
        while let Some(ticket) = state.shares.next(limit) {
            if let Some(sender) = state.waiting.remove(&ticket) {
                // A request that was cancelled returns its turn by itself.
                let _ = sender.send(());
            }
        }
        if state.shares.in_flight() == 0 {
            self.0.idle.notify_waiters();
        }
        self.publish(state);
        let until = state.limit.paused_until();
        let Some(until) = until.filter(|until| *until > Instant::now()) else {
            return;
        };
        if state.awaited < Some(until) && state.shares.has_waiting() {
            state.awaited = Some(until);
            let pause = tasks::named(Task::FlowPause, "");
            pause.keep(Ends::freely(), (self.clone(), until), |(flow, until)| {
                Box::pin(async move {
                    sleep_until(*until).await;
                    flow.admit_waiting(&mut flow.0.state.lock());
                })
            });
        }
    }

    fn publish(&self, state: &FlowState) {
        if let Some(metrics) = self.0.metrics.get() {
            metrics.set(state.shares.in_flight(), state.limit.current());
        }
    }

    /// A request has finished or was cancelled.
    fn done(&self, permit: &Permit) {
        let mut state = self.0.state.lock();
        let now = Instant::now();
        if let Some(heard) = permit.heard.get() {
            let used = state.shares.in_flight();
            let moments = (permit.started, now);
            (state.limit).heard(&permit.share, *heard, moments, used, (self.0.random)());
            if let (ResponseSignal::Throttled(_), Some(metrics)) = (heard, self.0.metrics.get()) {
                metrics.throttled();
            }
        }
        state.shares.done(&permit.share);
        self.admit_waiting(&mut state);
    }
}

/// In line, until its turn or until it is dropped.
struct QueuedRequest {
    flow: Flow,
    share: Share,
    ticket: Option<QueuePosition>,
}

impl Drop for QueuedRequest {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut state = self.flow.0.state.lock();
        state.waiting.remove(&ticket);
        if !state.shares.give_up(&self.share, ticket) {
            // It already had its turn, which is not used.
            state.shares.done(&self.share);
        }
        self.flow.admit_waiting(&mut state);
    }
}

/// The turn of one request; it ends when the last clone is dropped. It is put into the request's extensions.
#[derive(Clone, Debug)]
pub struct RequestPermit(Arc<Permit>);

#[derive(Debug)]
struct Permit {
    flow: Flow,
    share: Share,
    started: Instant,
    heard: OnceLock<ResponseSignal>,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.flow.done(self);
    }
}
