//! The task of an informer: list, then watch, indefinitely.
//!
//! ```text
//!        ┌── 410, a reader needs more, or an older state ◄───┐
//!        ▼                                                   │
//!  ──► list ── complete ──► watch from there ── clean end ──►┤ again from the last event or bookmark
//!        │ error                 │ error, or silence beyond the requested time
//!        └───────► pause ◄───────┘
//! ```
//!
//! After an outage the API server may be in an older state: etcd was restored from a backup. A watch from a resourceVersion that
//! it has not reached again shows nothing, without an error. So after a failure its state is compared first: a list of one object
//! returns the resourceVersion, and everything is listed again if it is behind the known one. The same happens when an event, a
//! bookmark or a response is older than the state known before it, and when a Lease of the process is read in an older state than
//! it was written: this also detects a restored state that has passed the known resourceVersion since.
//!
//! Each watch has its own pause: 200 ms, doubled up to 10 s; 1 s to 30 s for a kind that is not served; 30 s for a missing
//! permission. A nudge ends it. While the API server is unreachable, all watches wait for its return, and then resume from their
//! position, one after the other.

mod compare;
mod pause;

use std::{panic::AssertUnwindSafe, pin::pin, time::Duration};

use futures::FutureExt;
use orkestra_ground::Entropy;
use orkestra_object::{Identity, decode::Version};
use tokio::time::{Instant, sleep, sleep_until};

use self::pause::PAUSE;
use super::{
    Record, WatchProblem,
    informer::{Reading, Shared, count},
};
use crate::{
    reach::Interruption,
    requests::{Cluster, ClusterError, Event, Listed, PageOf, is_missed},
};

/// The requested duration of a watch, with 5 s of jitter below: kube-apiserver ends watches at 5 minutes or later.
const LIFETIME: Duration = Duration::from_secs(295);
/// How long a watch may exceed its duration before its connection counts as dead.
const SLACK: Duration = Duration::from_secs(15);
/// A watch that ends sooner without an event has failed.
const SHORT: Duration = Duration::from_secs(1);
/// A watch that lasted this long resets the backoff.
const STEADY: Duration = Duration::from_secs(5);
/// The shortest interval between comparisons of the API server's state because of a response.
const COMPARED: Duration = Duration::from_secs(10);

/// Runs the informer until it is aborted.
pub(crate) async fn run<R: Record>(shared: &Shared<R>, cluster: &Cluster, entropy: &Entropy) {
    loop {
        let mut reflector = Reflector {
            shared,
            cluster,
            entropy,
            failures: 0,
            from: None,
            doubt: false,
            compared: Instant::now(),
            rewinds: cluster.reach().rewinds(),
        };
        if AssertUnwindSafe(reflector.reflect())
            .catch_unwind()
            .await
            .is_err()
        {
            count(&shared.counts.panics);
            tracing::error!(kind = %shared.watched.served.plural, "a watch panicked; restarting it");
            let problem = WatchProblem::Unavailable {
                message: "the watch panicked; it restarts".to_owned(),
                is_lasting: false,
            };
            shared.failing(problem, cluster.reach().outages());
            sleep(PAUSE.longest).await;
        }
    }
}

struct Reflector<'a, R> {
    shared: &'a Shared<R>,
    cluster: &'a Cluster,
    entropy: &'a Entropy,
    /// Consecutive pauses.
    failures: u32,
    /// The start of the next watch; `None` if a list is due.
    from: Option<Version>,
    /// Whether the API server may have been restored to an older state since its last response.
    doubt: bool,
    /// The time of the last comparison of states because of a response.
    compared: Instant,
    /// The number of rewinds of the API server known when the last list began.
    rewinds: u64,
}

/// The end of a watch.
enum WatchEnd {
    /// Regular: by the server, after the requested time.
    Clean,
    /// A reader needs more fields.
    List,
    /// The API server was unreachable: the connection may be dead without an error.
    Returned,
    /// The resourceVersion of its start is too old.
    Gone,
    /// The API server is in an older state than before.
    Rewound,
    /// Refused, or the connection broke or died.
    Failed(ClusterError),
}

impl<R: Record> Reflector<'_, R> {
    async fn reflect(&mut self) {
        loop {
            let rewinds = self.cluster.reach().rewinds();
            if rewinds > self.rewinds {
                (self.rewinds, self.from) = (rewinds, None);
                self.set_doubt(true);
            }
            // Large and rare, like everything that lists and starts: boxed, so that its memory is held only while it runs.
            if !Box::pin(self.prepare()).await {
                continue;
            }
            let started = Instant::now();
            let mut heard = false;
            let end = self.watch(&mut heard).await;
            let lasted = started.elapsed();
            if lasted >= STEADY || (heard && lasted >= SHORT) {
                self.failures = 0;
            }
            Box::pin(self.follow(end, heard, lasted >= SHORT)).await;
        }
    }

    /// Lists if a list is due, and compares states if there is a doubt; false if the watch cannot start yet.
    async fn prepare(&mut self) -> bool {
        if self.from.is_none() || self.shared.wants_list() {
            match self.list().await {
                Ok(version) => {
                    self.from = Some(version);
                    self.set_doubt(false);
                }
                Err(error) => {
                    self.close(&error);
                    // A page that is too old is not a problem: the next list is fresh.
                    if !matches!(error, ClusterError::Gone(_)) {
                        self.fail(&error);
                    }
                    self.pause(&error).await;
                    return false;
                }
            }
        }
        if self.doubt
            && let Err(error) = self.compare().await
        {
            self.close(&error);
            self.fail(&error);
            self.pause(&error).await;
            return false;
        }
        self.from.is_some()
    }

    /// Handles the end of a watch.
    async fn follow(&mut self, end: WatchEnd, heard: bool, was_long: bool) {
        let was_good = heard || was_long;
        match end {
            WatchEnd::List => {}
            WatchEnd::Returned => self.set_doubt(true),
            WatchEnd::Clean if was_long => {}
            WatchEnd::Clean => {
                self.set_doubt(true);
                let error = ClusterError::Unavailable("the API server closed the watch".to_owned());
                self.close(&error);
                if !heard {
                    self.fail(&error);
                }
                self.pause(&error).await;
            }
            WatchEnd::Gone | WatchEnd::Rewound => {
                self.from = None;
                if !was_long {
                    self.pause(&ClusterError::Gone(String::new())).await;
                }
            }
            WatchEnd::Failed(error) => {
                tracing::debug!(kind = %self.shared.watched.served.plural, %error, "a watch failed");
                self.set_doubt(true);
                self.close(&error);
                // A watch that worked and broke is restarted before it is reported.
                if was_good {
                    count(&self.shared.counts.failures);
                } else {
                    self.fail(&error);
                }
                if matches!(
                    error,
                    ClusterError::NotServed(_) | ClusterError::NotFound(_)
                ) {
                    // If it is served again, the CRD may be another one.
                    self.from = None;
                }
                self.pause(&error).await;
            }
        }
    }

    /// Lists all objects; returns the resourceVersion to watch from.
    async fn list(&self) -> Result<Version, ClusterError> {
        count(&self.shared.counts.lists);
        let (reading, generation) = self.shared.reading();
        let watched = &self.shared.watched;
        let mut next: Option<String> = None;
        let mut version: Option<Version> = None;
        loop {
            let page = PageOf {
                limit: self.shared.page,
                next: next.as_deref(),
            };
            let mut take = |listed| self.take_listed(listed, &reading, &mut version);
            let how = (R::FORM, &reading.projection);
            next = self
                .cluster
                .list_each(how, &watched.served, &watched.scope, page, &mut take)
                .await?;
            if next.is_none() {
                let changes = self.shared.records().list_end();
                self.shared.unread.list_end();
                self.shared.notify(changes, None);
                self.shared.synced(generation);
                return Ok(version.unwrap_or_else(|| Version::from("")));
            }
            tokio::task::yield_now().await;
        }
    }

    /// Processes a part of a list. The first page determines the resourceVersion of all of them.
    fn take_listed(&self, listed: Listed, reading: &Reading, version: &mut Option<Version>) {
        match listed {
            Listed::Version(text) => {
                version.get_or_insert_with(|| {
                    let version = Version::from(&*text);
                    self.shared.records().list_begin(version.clone());
                    self.shared.unread.list_begin();
                    version
                });
            }
            Listed::Object(object) => {
                let read = self.shared.read(&object, &reading.spec);
                let mut records = self.shared.records();
                let change = match read {
                    Ok(record) => records.list_put(record),
                    Err(key) => {
                        match key {
                            Some(key) => records.list_keep(&key),
                            None => records.list_blind(),
                        }
                        None
                    }
                };
                drop(records);
                self.shared.notify(change, None);
            }
        }
    }

    /// Watches from `from`; sets `heard` if anything was received.
    // Over 60 lines: one loop over everything that continues or ends a watch, which share its position.
    async fn watch(&mut self, heard: &mut bool) -> WatchEnd {
        let timeout = self.entropy.shorten(LIFETIME, 5.0 / LIFETIME.as_secs_f64());
        let dead_at = Instant::now() + timeout + SLACK;
        let watched = &self.shared.watched;
        let reach = self.cluster.reach();
        let seen = reach.returns();
        count(&self.shared.counts.watches);
        let from = self.from.clone().unwrap_or_else(|| Version::from(""));
        let start = async {
            let (served, scope) = (&watched.served, &watched.scope);
            let start = self.cluster.watch(R::FORM, served, scope, &from, timeout);
            let started = start.await;
            reach.heard(is_missed(&started));
            started.map_err(refused)
        };
        let mut stream = match Box::pin(start).await {
            Ok(stream) => stream,
            Err(end) => return end,
        };
        let mut interrupted = pin!(reach.interrupted(seen, self.rewinds));
        let mut steady_at = Some(Instant::now() + SHORT);
        let mut compare_at = None;
        loop {
            let (reading, _) = self.shared.reading();
            let report_at = self.shared.unread.report_waiting();
            let due_at = [steady_at, compare_at, report_at].into_iter().flatten();
            // One timer for everything that is due at a time: each takes memory in every watch.
            let due_at = due_at.fold(dead_at, Instant::min);
            let event = tokio::select! {
                event = stream.next(&reading.projection) => event,
                () = self.shared.nudge.notified() => {
                    if self.shared.wants_list() {
                        return WatchEnd::List;
                    }
                    if self.shared.is_doubted() {
                        compare_at.get_or_insert(Instant::now().max(self.compared + COMPARED));
                    }
                    continue;
                }
                why = &mut interrupted => match why {
                    Interruption::Returned => return WatchEnd::Returned,
                    Interruption::Rewound => {
                        count(&self.shared.counts.rewinds);
                        return WatchEnd::Rewound;
                    }
                },
                () = sleep_until(due_at) => {
                    let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= due_at);
                    if is_due(steady_at) {
                        steady_at = None;
                        self.shared.healthy();
                    } else if is_due(compare_at) {
                        compare_at = None;
                        self.compared = Instant::now();
                        // On failure it is repeated at the next doubt.
                        let _ = Box::pin(self.compare()).await;
                        if self.from.is_none() {
                            return WatchEnd::Rewound;
                        }
                    } else if due_at == dead_at {
                        return WatchEnd::Failed(ClusterError::Unavailable("the watch stopped responding".to_owned()));
                    }
                    continue;
                }
            };
            match event {
                Ok(None) => return WatchEnd::Clean,
                Ok(Some(event)) => {
                    *heard = true;
                    self.take_in(event, &reading);
                    if self.from.is_none() {
                        return WatchEnd::Rewound;
                    }
                }
                Err(error) => return refused(error),
            }
        }
    }

    /// Processes an event. One that is older than the known state ends this watch: there is no position to watch from.
    fn take_in(&mut self, event: Event, reading: &Reading) {
        let (object, is_there) = match event {
            Event::Put(object) => (object, true),
            Event::Gone(object) => (object, false),
            Event::Bookmark(version) => {
                if self.accepts(&version) {
                    self.shared.records().advance(&version);
                    self.from = Some(version);
                }
                return;
            }
        };
        let Ok(id) = Identity::read(&object) else {
            count(&self.shared.counts.unreadable);
            self.shared
                .unread
                .add_nameless(&object, "it has no identity");
            return;
        };
        if !self.accepts(&id.resource_version) {
            return;
        }
        let change = if is_there {
            let read = self.shared.read(&object, &reading.spec);
            read.ok()
                .and_then(|record| self.shared.records().put(record))
        } else {
            self.shared.unread.remove(&id.key);
            self.shared.records().delete(&id)
        };
        self.from = Some(id.resource_version);
        self.shared.notify(change, None);
    }
}

fn refused(error: ClusterError) -> WatchEnd {
    match error {
        ClusterError::Gone(_) => WatchEnd::Gone,
        error => WatchEnd::Failed(error),
    }
}
