//! The only place where tasks start: every task has a name from a fixed set, and its end has a defined consequence.
//!
//! ```text
//!  named(Task, of) ─┬─ start, start_in, start_on ──► finishes by itself; a failure is logged, counted, and returned to the caller
//!                   └─ keep, kept ──► runs ── panic, or an unexpected end ────────────► logged, counted ──┐
//!                                      ▲                                                                  │ OnTaskEnd
//!                                      └──────────────── Restart, after a backoff, with its state ◄───────┤
//!                                                        FailOperator, EndProcess: `otherwise`, `ending` ◄┘
//! ```
//!
//! Nothing else in the crate calls `tokio::spawn` and similar functions: a test checks the sources.

#[cfg(debug_assertions)]
mod faults;
mod table;
mod tally;
#[cfg(test)]
mod tests;
mod vitals;

use std::{any::Any, fmt, panic::AssertUnwindSafe, pin::Pin, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    sync::watch,
    task::{AbortHandle, JoinHandle, JoinSet},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::backoff::Backoff;

pub use self::{
    table::{OnTaskEnd, Task, markdown},
    tally::{Counts, counts},
    vitals::Vitals,
};

/// The delay before a restart.
const BACKOFF: Backoff = Backoff::doubling(Duration::from_millis(200), Duration::from_secs(30));
/// The backoff starts again from the first delay once a task has run for this long.
const STEADY: Duration = Duration::from_secs(30);

/// Why the process has to end: the task and its error. It is set once.
static FATAL_ERROR: std::sync::LazyLock<watch::Sender<Option<String>>> =
    std::sync::LazyLock::new(|| watch::Sender::new(None));

/// Returns why the process has to end, once a task that it requires has failed.
pub fn fatal_error() -> watch::Receiver<Option<String>> {
    FATAL_ERROR.subscribe()
}

/// Names a task that is about to start. `of` is the task's subject, for the log: an operator, a Katalog, a kind; it may be empty.
pub fn named(task: Task, of: impl fmt::Display) -> NamedTask {
    NamedTask {
        task,
        of: of.to_string().into(),
    }
}

/// A task that is about to start.
#[derive(Clone, Debug)]
pub struct NamedTask {
    task: Task,
    of: Box<str>,
}

/// When the end of a kept task is expected.
#[derive(Clone, Debug, Default)]
pub struct Ends {
    freely: bool,
    stop: Option<CancellationToken>,
}

impl Ends {
    /// Never: the task is aborted, or ends with the process.
    pub fn never() -> Self {
        Self::default()
    }

    /// Whenever the task returns.
    pub fn freely() -> Self {
        Self {
            freely: true,
            stop: None,
        }
    }

    /// Once `stop` is cancelled; this also ends a backoff.
    pub fn with(stop: &CancellationToken) -> Self {
        Self {
            freely: false,
            stop: Some(stop.clone()),
        }
    }

    /// Whenever the task returns; a backoff ends once `stop` is cancelled.
    pub fn freely_or_with(stop: &CancellationToken) -> Self {
        Self {
            freely: true,
            stop: Some(stop.clone()),
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop
            .as_ref()
            .is_some_and(CancellationToken::is_cancelled)
    }

    async fn stopped(&self) {
        match &self.stop {
            Some(stop) => stop.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

impl NamedTask {
    /// Starts a task that finishes by itself.
    pub fn start<T: Send + 'static>(
        self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::spawn(self.finishing(work))
    }

    /// The same, in a set.
    pub fn start_in<T: Send + 'static>(
        self,
        set: &mut JoinSet<T>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> AbortHandle {
        set.spawn(self.finishing(work))
    }

    /// The same, followed by a tracker.
    pub fn start_on<T: Send + 'static>(
        self,
        tracker: &TaskTracker,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        tracker.spawn(self.finishing(work))
    }

    /// Starts a task whose failure has a consequence: `otherwise` is called with the error. An end is a failure unless `ends`
    /// expects it.
    pub fn start_or(
        self,
        ends: Ends,
        work: impl Future<Output = ()> + Send + 'static,
        otherwise: impl FnOnce(String) + Send + 'static,
    ) -> JoinHandle<()> {
        let work = Box::pin(work);
        tokio::spawn(async move {
            if let Some(error) = self.turn(&ends, work).await {
                // If `otherwise` panics too, the panic has already been printed.
                let _ = std::panic::catch_unwind(AssertUnwindSafe(|| otherwise(error)));
            }
        })
    }

    /// Runs blocking work on a thread of the blocking pool.
    pub fn start_blocking<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        tokio::task::spawn_blocking(move || self.blocking(work))
    }

    /// Runs blocking work on its own thread, which ends with the process.
    ///
    /// # Errors
    /// The operating system cannot create a thread.
    pub fn start_thread(
        self,
        work: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<std::thread::JoinHandle<()>> {
        let builder = std::thread::Builder::new().name(self.task.name().to_owned());
        builder.spawn(move || self.blocking(work))
    }

    /// Starts a task that is restarted with backoff whenever it fails. `state` is kept across runs.
    pub fn keep<S: Send + 'static>(
        self,
        ends: Ends,
        state: S,
        run: impl for<'a> Fn(&'a mut S) -> BoxFuture<'a, ()> + Send + 'static,
    ) -> JoinHandle<()> {
        tokio::spawn(self.kept(ends, state, run))
    }

    /// The same, followed by a tracker.
    pub fn keep_on<S: Send + 'static>(
        self,
        tracker: &TaskTracker,
        ends: Ends,
        state: S,
        run: impl for<'a> Fn(&'a mut S) -> BoxFuture<'a, ()> + Send + 'static,
    ) -> JoinHandle<()> {
        tracker.spawn(self.kept(ends, state, run))
    }

    /// The future of [`NamedTask::keep`], for callers that run it as a part of another future.
    // Not an `async fn`: its future would hold the state twice, as an argument and as a variable.
    #[expect(clippy::manual_async_fn, reason = "see above")]
    pub fn kept<S>(
        self,
        ends: Ends,
        mut state: S,
        run: impl for<'a> Fn(&'a mut S) -> BoxFuture<'a, ()>,
    ) -> impl Future<Output = ()> {
        async move {
            let mut failures = 0;
            loop {
                let started = Instant::now();
                if self.turn(&ends, run(&mut state)).await.is_none() {
                    return;
                }
                if started.elapsed() >= STEADY {
                    failures = 0;
                }
                // Rare: boxed, so that it takes memory only while it waits.
                let pause = tokio::time::timeout(BACKOFF.after(failures), ends.stopped());
                if Box::pin(pause).await.is_ok() {
                    return;
                }
                failures = failures.saturating_add(1);
                tally::restarted(self.task);
                tracing::info!(task = self.task.name(), of = &*self.of, "task restarted");
            }
        }
    }

    /// Runs a task that the process requires: if it fails, the process ends and the result is `None`.
    pub async fn needed<T>(self, work: impl Future<Output = T>) -> Option<T> {
        match self.attend(Box::pin(work)).await {
            Ok(done) => Some(done),
            Err(error) => {
                self.end_process(&error);
                None
            }
        }
    }

    /// Starts a task that the process requires, until `stop` is cancelled.
    pub fn start_needed(
        self,
        stop: &CancellationToken,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> JoinHandle<()> {
        let named = self.clone();
        self.start_or(Ends::with(stop), work, move |error| {
            named.end_process(&error);
        })
    }

    fn end_process(&self, error: &str) {
        let why = format!("task {} ended: {error}", self.task.name());
        FATAL_ERROR.send_if_modified(|fatal| {
            let is_first = fatal.is_none();
            fatal.get_or_insert(why);
            is_first
        });
    }

    /// Logs and counts panics of the work, and passes them on to the caller that awaits it.
    fn finishing<T>(self, work: impl Future<Output = T>) -> impl Future<Output = T> {
        let work = Box::pin(work);
        async move {
            match self.attend_raw(work).await {
                Ok(done) => done,
                Err(panic) => {
                    self.note(&panic_text(&*panic));
                    std::panic::resume_unwind(panic)
                }
            }
        }
    }

    fn blocking<T>(self, work: impl FnOnce() -> T) -> T {
        let _running = tally::Running::new(self.task);
        let work = AssertUnwindSafe(|| {
            fault_point(self.task.name(), &self.of);
            work()
        });
        std::panic::catch_unwind(work).unwrap_or_else(|panic| {
            let error = panic_text(&*panic);
            self.note(&error);
            if self.task.at_end() == OnTaskEnd::EndProcess {
                self.end_process(&error);
            }
            std::panic::resume_unwind(panic)
        })
    }

    /// Runs a task once and returns its error, if it failed.
    async fn turn<F>(&self, ends: &Ends, work: Pin<Box<F>>) -> Option<String>
    where
        F: Future<Output = ()> + ?Sized,
    {
        match self.attend_raw(work).await {
            Ok(()) if ends.freely || ends.is_stopped() => None,
            Ok(()) => {
                let error = "it ended unexpectedly".to_owned();
                self.note(&error);
                Some(error)
            }
            Err(panic) => {
                let error = panic_text(&*panic);
                self.note(&error);
                Some(error)
            }
        }
    }

    async fn attend<F, T>(&self, work: Pin<Box<F>>) -> Result<T, String>
    where
        F: Future<Output = T> + ?Sized,
    {
        let attended = self.attend_raw(work).await;
        attended.map_err(|panic| {
            let error = panic_text(&*panic);
            self.note(&error);
            error
        })
    }

    /// Runs the work as a counted task that tests can end. On a panic, and when a test ends it, the work is dropped while the
    /// thread unwinds; this shows a queue that its key was not handled.
    async fn attend_raw<F, T>(&self, work: Pin<Box<F>>) -> Result<T, Box<dyn Any + Send>>
    where
        F: Future<Output = T> + ?Sized,
    {
        let _running = tally::Running::new(self.task);
        #[cfg(debug_assertions)]
        let work = faults::struck(self.task, &self.of, work);
        AssertUnwindSafe(work).catch_unwind().await
    }

    fn note(&self, error: &str) {
        tally::failed(self.task, error);
        let consequence = self.task.at_end().consequence();
        tracing::error!(
            task = self.task.name(),
            of = &*self.of,
            error,
            consequence,
            "task failed"
        );
    }
}

/// A place outside any task where a test can make the code panic; does nothing in a release.
pub fn fault_point(name: &str, of: &str) {
    #[cfg(debug_assertions)]
    faults::point(name, of);
    #[cfg(not(debug_assertions))]
    let _ = (name, of);
}

/// Returns the message of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("no message"))
}
