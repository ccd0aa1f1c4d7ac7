//! The reachability of the API server: one breaker for the process.
//!
//! ```text
//!          3 requests in a row          a probe fails
//!            without an answer          (/readyz)
//!   up ────────────────────► doubted ──────────────► away ──┐ one probe at a time, 200 ms to 2 s apart
//!   ▲                           │                      │ ◄──┘
//!   └─────── a probe is answered┴──────────────────────┘
//! ```
//!
//! While the API server is not up, queues hand out no key, so that no custom resource is charged for an outage, and watches wait.
//! When it is back, watches resume from their position, spread over a time that grows with their number; requests that were made
//! in the meantime are sent at once. An answer alone does not mean that the API server is up: while it starts, it refuses
//! requests for which it has not loaded the RBAC rules. `/readyz` shows when it is ready.
//!
//! Before it counts as up again, the object that this process wrote last is read: in an older state, or gone, it shows that
//! etcd was restored from a backup, and everything is listed again.

mod machine;
mod written;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::future::BoxFuture;
use orkestra_ground::{
    Entropy,
    tasks::{self, Ends, Task},
};
use orkestra_object::{decode::Version, value::Node};
use parking_lot::Mutex;
use prometheus::IntGauge;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};

pub use self::machine::Probe;
use self::{
    machine::{Machine, ProbeStep},
    written::WrittenObject,
};

/// The deadline of a probe.
const PROBE_DEADLINE: Duration = Duration::from_secs(5);
/// How often the last write is looked up before the API server counts as up without it.
const LOOKS: u32 = 3;
/// The fraction by which jitter may shorten the pause between probes.
const PROBE_SPREAD: f64 = 0.5;
/// The time that each waiting watch adds to the period over which watches resume.
const SHARE: Duration = Duration::from_millis(10);
/// The longest period over which watches resume.
const LONGEST_RETURN: Duration = Duration::from_secs(5);

/// The known state of the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Whether the API server is up, so that requests can be made.
    pub is_up: bool,
    /// The outage; `None` while the API server is up or only doubted.
    pub away: Option<Unreachable>,
    /// The number of ended outages.
    pub returns: u64,
    /// How often the API server's store was found restored to an older state, detected on an object; watches do not report this.
    pub rewinds: u64,
}

/// Why a running watch has to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// An outage ended.
    Returned,
    /// The API server's store was restored to an older state.
    Rewound,
}

/// An unreachable API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable {
    /// The start of the outage.
    pub since: Instant,
    /// The failure of the last probe.
    pub why: String,
}

impl Unreachable {
    /// The outage as a message for users.
    pub fn message(&self) -> String {
        format!(
            "the API server cannot be reached; all requests wait until it is reachable again: {}",
            self.why
        )
    }
}

/// Probes whether the API server is ready.
type Prober = Arc<dyn Fn() -> BoxFuture<'static, Probe> + Send + Sync>;

/// Returns the resourceVersion of the only object of a list, given the list's path.
type VersionReader =
    Arc<dyn Fn(String) -> BoxFuture<'static, Result<Option<Version>, kube::Error>> + Send + Sync>;

/// The reachability of the API server, as observed by the requests of the process. Clones share it.
#[derive(Clone)]
pub struct Reach(Arc<Inner>);

struct Inner {
    machine: Mutex<Machine>,
    view: watch::Sender<View>,
    /// Watches that resume when the API server is reachable again.
    waiting: AtomicU32,
    /// `None` if the API server is never doubted.
    probing: Option<Probing>,
    /// What this process wrote last.
    written: Mutex<Option<WrittenObject>>,
}

struct Probing {
    prober: Prober,
    looker: VersionReader,
    entropy: Entropy,
    /// 1 while the API server is reachable, as far as is known.
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
    /// One that always treats the API server as reachable.
    pub fn unquestioned() -> Self {
        Self::with(None)
    }

    /// One that probes with `client`.
    pub fn new(client: kube::Client, entropy: Entropy, gauge: IntGauge) -> Self {
        let looking = client.clone();
        Self::probed_by(
            Arc::new(move || Box::pin(ask(client.clone()))),
            Arc::new(move |path| Box::pin(written::look(looking.clone(), path))),
            entropy,
            gauge,
        )
    }

    fn probed_by(prober: Prober, looker: VersionReader, entropy: Entropy, gauge: IntGauge) -> Self {
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
            written: Mutex::new(None),
        }))
    }

    /// Records the outcome of a request: `missed` if no answer came. Must be called on a tokio runtime.
    pub fn heard(&self, missed: bool) {
        if self.0.probing.is_none() {
            return;
        }
        if self.change(|machine| machine.heard(missed, Instant::now())) {
            let probe = tasks::named(Task::Probe, "");
            probe.keep(Ends::freely(), self.clone(), |reach| {
                Box::pin(reach.clone().probe())
            });
        }
    }

    /// Whether the API server is up.
    pub fn is_up(&self) -> bool {
        self.0.view.borrow().is_up
    }

    /// Subscribes to the known state.
    pub fn view(&self) -> watch::Receiver<View> {
        self.0.view.subscribe()
    }

    /// Waits until the API server is up.
    pub async fn up(&self) {
        // The sender lives as long as `self`.
        let _ = self.view().wait_for(|view| view.is_up).await;
    }

    /// The number of ended outages so far, for [`Reach::back`].
    pub fn returns(&self) -> u64 {
        self.0.view.borrow().returns
    }

    /// The same, but none during an outage. A doubt is not an outage: while one kind alone is not answered, the API server is
    /// doubted and found ready again and again.
    pub fn outages(&self) -> Option<u64> {
        let view = self.0.view.borrow();
        view.away.is_none().then_some(view.returns)
    }

    /// Waits until the number of ended outages exceeds `seen`, then for a random delay that grows with the number of waiting
    /// watches.
    pub async fn back(&self, seen: u64) {
        // No number of rewinds is larger.
        self.interrupted(seen, u64::MAX).await;
    }

    /// The same, or until a rewind was recorded more often than `rewinds`.
    pub async fn interrupted(&self, returns: u64, rewinds: u64) -> Interruption {
        let waiting = WaitingWatch::new(&self.0.waiting);
        let mut view = self.view();
        let is_due = |view: &View| view.rewinds > rewinds || (view.is_up && view.returns > returns);
        // As above.
        let is_rewound = (view.wait_for(is_due).await).is_ok_and(|view| view.rewinds > rewinds);
        if is_rewound {
            return Interruption::Rewound;
        }
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
        Interruption::Returned
    }

    /// Records that an object was read in an older state than this process has written or seen: etcd was restored from a backup.
    /// Every watch lists again, whatever resourceVersion the API server has reached since.
    pub fn note_rewind(&self) {
        self.change(Machine::rewind);
    }

    /// How often a rewind was recorded, for [`Reach::interrupted`].
    pub fn rewinds(&self) -> u64 {
        self.0.view.borrow().rewinds
    }

    /// Takes in the answer to a write; `path` lists the object alone.
    pub(crate) fn note_written(&self, path: impl FnOnce() -> String, answer: &Node) {
        if self.0.probing.is_some()
            && let Some(written) = WrittenObject::read(path(), answer)
        {
            *self.0.written.lock() = Some(written);
        }
    }

    /// The object that this path lists is deleted: nothing is to be concluded from that it is gone.
    pub(crate) fn note_deleted(&self, path: impl FnOnce() -> String) {
        let mut last = self.0.written.lock();
        let path = last.is_some().then(path);
        last.take_if(|last| Some(&last.path) == path.as_ref());
    }

    /// Looks whether the last write is still there, and notes a rewind where it is not.
    async fn look(&self, probing: &Probing) {
        let Some(written) = self.0.written.lock().clone() else {
            return;
        };
        for _ in 0..LOOKS {
            let found = (probing.looker)(written.path.clone());
            match timeout(PROBE_DEADLINE, found).await {
                Ok(Ok(found)) => {
                    if written.is_lost(found.as_ref()) {
                        // The state it has now is known from the lists that follow.
                        self.0.written.lock().take();
                        tracing::warn!(
                            path = written.path,
                            "the last written object is missing or has an older state (etcd restored from a backup?); listing all objects again"
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
            sleep(probing.entropy.shorten(machine::PAUSE.first, PROBE_SPREAD)).await;
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
                ProbeStep::Up(None) => return,
                ProbeStep::Up(Some(outage)) => {
                    probing.gauge.set(1);
                    tracing::info!(
                        seconds = outage.as_secs(),
                        "the API server is reachable again"
                    );
                    return;
                }
                ProbeStep::Away(why) => {
                    probing.gauge.set(0);
                    tracing::warn!(
                        error = why,
                        "the API server is unreachable; all requests wait until it is reachable again"
                    );
                    sleep(probing.entropy.shorten(machine::PAUSE.first, PROBE_SPREAD)).await;
                }
                ProbeStep::Again(pause) => {
                    sleep(probing.entropy.shorten(pause, PROBE_SPREAD)).await;
                }
            }
        }
    }

    /// Changes the machine and publishes the new state.
    fn change<T>(&self, change: impl FnOnce(&mut Machine) -> T) -> T {
        let mut machine = self.0.machine.lock();
        let result = change(&mut machine);
        let now = machine.view();
        // Under the lock, so that the last state is the one published last.
        self.0.view.send_if_modified(|view| {
            let differs = *view != now;
            *view = now;
            differs
        });
        result
    }
}

/// Counts one waiting watch until it is dropped.
struct WaitingWatch<'a>(&'a AtomicU32);

impl<'a> WaitingWatch<'a> {
    fn new(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitingWatch<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Requests `/readyz`, which every authenticated user may read.
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
        Err(error) => Probe::Failed(orkestra_ground::chain(&error)),
    }
}

#[cfg(test)]
mod tests;
