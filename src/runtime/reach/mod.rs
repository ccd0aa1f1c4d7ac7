//! Whether the API server can be reached: one breaker for the process.
//!
//! ```text
//!          3 requests in a row          a probe fails
//!            without an answer          (/readyz)
//!   up ────────────────────► doubted ──────────────► away ──┐ one probe at a time, 200 ms to 2 s apart
//!   ▲                           │                      │ ◄──┘
//!   └─────── a probe is answered┴──────────────────────┘
//! ```
//!
//! While it is not up, queues hand out no key, so that no custom resource is charged for what is not its fault, and watches
//! wait where they are. When it is back they go on from where they were, spread over a time that grows with their number;
//! what was asked for meanwhile is done at once. That the API server answers at all is not enough to be up: one that starts
//! refuses what it does not know the rights of yet. `/readyz` says when it does.
//!
//! Before it counts as up again, the object that this process wrote last is looked at: in an older state, or gone, it shows
//! that etcd was restored from a backup, and everything is listed anew.

mod machine;
mod written;

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use orkestra_core::{reconcile::record::Version, value::Node};
use prometheus::IntGauge;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

pub use self::machine::Probe;
use self::{
    machine::{Machine, Step},
    written::Written,
};
use super::{entropy::Entropy, wire::WireError};
use crate::tasks::{self, Ends, Task};

/// How long a probe may take.
const PROBE_DEADLINE: Duration = Duration::from_secs(5);
/// How often the last write is looked for before the API server counts as up without it.
const LOOKS: u32 = 3;
/// Part of the pause between probes that jitter may take off it.
const PROBE_SPREAD: f64 = 0.5;
/// How much longer the return of all takes for each that waits.
const SHARE: Duration = Duration::from_millis(10);
/// How long the return of all takes at most.
const LONGEST_RETURN: Duration = Duration::from_secs(5);

/// What is known of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Whether requests are worth making.
    pub is_up: bool,
    /// Since when it is known to be away, and why; none while it is up or only doubted.
    pub away: Option<Away>,
    /// How often it came back.
    pub returns: u64,
}

/// An API server that cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Away {
    /// Since when.
    pub since: Instant,
    /// What the last probe ran into.
    pub why: String,
}

impl Away {
    /// The same for people.
    pub fn message(&self) -> String {
        format!(
            "the API server cannot be reached, so everything waits until it is back: {}",
            self.why
        )
    }
}

/// Asks the API server whether it is ready.
type Prober = Arc<dyn Fn() -> BoxFuture<'static, Probe> + Send + Sync>;

/// Asks for the resourceVersion of the only object of a list, by the path of that.
type Looker =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<Option<Version>, kube::Error>> + Send + Sync>;

/// Whether the API server can be reached, as the requests of the process tell. Clones are the same one.
#[derive(Clone)]
pub struct Reach(Arc<Inner>);

struct Inner {
    machine: Mutex<Machine>,
    view: watch::Sender<View>,
    /// Watches that will go on at the next return.
    waiting: AtomicU32,
    /// None where nobody ever doubts.
    probing: Option<Probing>,
    /// How often its store was found restored to an older state by an object that does not say so to a watch.
    rewinds: watch::Sender<u64>,
    /// What this process wrote last.
    written: Mutex<Option<Written>>,
}

struct Probing {
    prober: Prober,
    looker: Looker,
    entropy: Entropy,
    /// 1 while the API server can be reached, as far as is known.
    gauge: IntGauge,
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reach")
            .field(&*self.0.view.borrow())
            .finish()
    }
}

impl Reach {
    /// One that takes the API server for reachable, whatever happens.
    pub fn unquestioned() -> Self {
        Self::with(None)
    }

    /// One that asks by `client`.
    pub fn new(client: kube::Client, entropy: Entropy, gauge: IntGauge) -> Self {
        let looking = client.clone();
        Self::probed_by(
            Arc::new(move || Box::pin(ask(client.clone()))),
            Arc::new(move |path| Box::pin(written::look(looking.clone(), path))),
            entropy,
            gauge,
        )
    }

    fn probed_by(prober: Prober, looker: Looker, entropy: Entropy, gauge: IntGauge) -> Self {
        gauge.set(1);
        Self::with(Some(Probing {
            prober,
            looker,
            entropy,
            gauge,
        }))
    }

    fn with(probing: Option<Probing>) -> Self {
        let machine = Machine::default();
        Self(Arc::new(Inner {
            view: watch::channel(machine.view()).0,
            machine: Mutex::new(machine),
            waiting: AtomicU32::new(0),
            probing,
            rewinds: watch::Sender::new(0),
            written: Mutex::new(None),
        }))
    }

    /// Takes in how a request ended. Must be called on a tokio runtime.
    pub fn heard<T>(&self, answer: &Result<T, WireError>) {
        if self.0.probing.is_none() {
            return;
        }
        let missed = matches!(answer, Err(WireError::Unavailable(_)));
        if self.change(|machine| machine.heard(missed, Instant::now())) {
            let probe = tasks::named(Task::Probe, "");
            probe.keep(Ends::freely(), self.clone(), |reach| {
                Box::pin(reach.clone().probe())
            });
        }
    }

    /// Whether requests are worth making.
    pub fn is_up(&self) -> bool {
        self.0.view.borrow().is_up
    }

    /// What is known, live.
    pub fn view(&self) -> watch::Receiver<View> {
        self.0.view.subscribe()
    }

    /// Waits until it is up.
    pub async fn up(&self) {
        // The sender lives as long as `self`.
        let _ = self.view().wait_for(|view| view.is_up).await;
    }

    /// How often it came back so far, for [`Reach::back`].
    pub fn returns(&self) -> u64 {
        self.0.view.borrow().returns
    }

    /// Waits until it came back more often than `seen`, and then for this one's turn: the more wait, the longer.
    pub async fn back(&self, seen: u64) {
        let waiting = Waiting::new(&self.0.waiting);
        let mut view = self.view();
        // As above.
        let _ = view
            .wait_for(|view| view.is_up && view.returns > seen)
            .await;
        let all = self.0.waiting.load(Ordering::Relaxed);
        if let Some(probing) = &self.0.probing {
            sleep(
                probing
                    .entropy
                    .shorten(SHARE.saturating_mul(all).min(LONGEST_RETURN), 1.0),
            )
            .await;
        }
        drop(waiting);
    }

    /// An object reads back in an older state than this process has written or seen: etcd was restored from a backup. Every
    /// watch lists anew, whichever resourceVersion the API server has reached since.
    pub fn note_rewind(&self) {
        self.0.rewinds.send_modify(|rewinds| *rewinds += 1);
    }

    /// How often that was noted, for [`Reach::rewound`].
    pub fn rewinds(&self) -> u64 {
        *self.0.rewinds.borrow()
    }

    /// Waits until it was noted more often than `seen`.
    pub async fn rewound(&self, seen: u64) {
        // The sender lives as long as `self`.
        let _ = (self.0.rewinds.subscribe())
            .wait_for(|rewinds| *rewinds > seen)
            .await;
    }

    /// Takes in the answer to a write; `path` lists the object alone.
    pub(super) fn note_written(&self, path: impl FnOnce() -> String, answer: &Node) {
        if self.0.probing.is_some()
            && let Some(written) = Written::read(path(), answer)
        {
            *self.written() = Some(written);
        }
    }

    /// The object that this path lists is deleted: nothing is to be concluded from that it is gone.
    pub(super) fn note_deleted(&self, path: impl FnOnce() -> String) {
        let mut last = self.written();
        let path = last.is_some().then(path);
        last.take_if(|last| Some(&last.path) == path.as_ref());
    }

    fn written(&self) -> MutexGuard<'_, Option<Written>> {
        let written = self.0.written.lock();
        written.unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether the last write is still there, and notes a rewind where it is not.
    async fn look(&self, probing: &Probing) {
        let Some(written) = self.written().clone() else {
            return;
        };
        for _ in 0..LOOKS {
            let found = (probing.looker)(written.path.clone());
            match timeout(PROBE_DEADLINE, found).await {
                Ok(Ok(found)) => {
                    if written.is_lost(found.as_ref()) {
                        // The state it has now is known from the lists that follow.
                        self.written().take();
                        tracing::warn!(
                            path = written.path,
                            "the last object that was written is gone or in an older state (etcd restored from a backup?); everything is listed anew"
                        );
                        self.note_rewind();
                    }
                    return;
                }
                Ok(Err(kube::Error::Api(refusal))) if refusal.code < 500 => return,
                Ok(Err(error)) => {
                    tracing::debug!(path = written.path, %error, "the last object that was written cannot be read");
                }
                Err(_) => return,
            }
            sleep(probing.entropy.shorten(machine::FIRST_PAUSE, PROBE_SPREAD)).await;
        }
    }

    /// Probes until the API server is up.
    async fn probe(self) {
        let Some(probing) = &self.0.probing else {
            return;
        };
        loop {
            let answer = timeout(PROBE_DEADLINE, (probing.prober)()).await;
            let answer = answer.unwrap_or_else(|_| {
                Probe::Failed(format!("no answer within {} s", PROBE_DEADLINE.as_secs()))
            });
            if matches!(answer, Probe::Ready) {
                self.look(probing).await;
            }
            match self.change(|machine| machine.probed(answer, Instant::now())) {
                Step::Up(None) => return,
                Step::Up(Some(outage)) => {
                    probing.gauge.set(1);
                    tracing::info!(seconds = outage.as_secs(), "the API server is back");
                    return;
                }
                Step::Away(why) => {
                    probing.gauge.set(0);
                    tracing::warn!(
                        error = why,
                        "the API server cannot be reached; everything waits until it is back"
                    );
                    sleep(probing.entropy.shorten(machine::FIRST_PAUSE, PROBE_SPREAD)).await;
                }
                Step::Again(pause) => sleep(probing.entropy.shorten(pause, PROBE_SPREAD)).await,
            }
        }
    }

    /// Changes the machine and shows what came of it.
    fn change<T>(&self, change: impl FnOnce(&mut Machine) -> T) -> T {
        let mut machine = self
            .0
            .machine
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let result = change(&mut machine);
        let now = machine.view();
        // Under the lock, so that the last state is the one that stays to be seen.
        self.0.view.send_if_modified(|view| {
            let differs = *view != now;
            *view = now;
            differs
        });
        result
    }
}

/// Counts one that waits, as long as it lives.
struct Waiting<'a>(&'a AtomicU32);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Asks `/readyz`, which everybody who is authenticated may.
async fn ask(client: kube::Client) -> Probe {
    let request = match http::Request::get("/readyz").body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return Probe::Failed(error.to_string()),
    };
    match client.request_text(request).await {
        Ok(_) => Probe::Ready,
        Err(kube::Error::Api(status)) if status.code < 500 => Probe::Denied,
        Err(kube::Error::Api(status)) => {
            Probe::Failed(format!("it is not ready (HTTP {})", status.code))
        }
        Err(error) => Probe::Failed(crate::runtime::wire::chain(&error)),
    }
}

#[cfg(test)]
mod tests;
