//! The answer of `/livez`.
//!
//! ```text
//!  heartbeat, a task of the workers ──► beat ◄── checked with a clock of the operating system ── watchdog, a thread: logs
//!                                            ◄──────────────────────────────────────────────── check(): /livez
//! ```

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Ends, FATAL_ERROR, Task, named, tally};

/// The interval of the heartbeat.
const BEAT: Duration = Duration::from_secs(1);
/// The longest time without a heartbeat. A single pass may take seconds, and a machine may be busy.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a vital task may keep failing before a restart of the process is the better choice.
const PATIENCE: Duration = Duration::from_mins(1);

/// The health of the process. Clones share it.
#[derive(Clone)]
pub struct Vitals(Arc<Inner>);

struct Inner {
    since: Instant,
    /// The time of the last heartbeat, in milliseconds after `since`.
    beat: AtomicU64,
    silence: Duration,
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vitals").field(&self.check()).finish()
    }
}

impl Vitals {
    /// Starts the heartbeat on the current tokio runtime, and the thread that watches it.
    pub fn start() -> Self {
        let vitals = Self::with(SILENCE);
        vitals.beat();
        vitals.watch();
        vitals
    }

    fn with(silence: Duration) -> Self {
        Self(Arc::new(Inner {
            since: Instant::now(),
            beat: AtomicU64::new(0),
            silence,
        }))
    }

    fn beat(&self) {
        named(Task::Heartbeat, "").keep(Ends::never(), self.clone(), |vitals| {
            Box::pin(async move {
                loop {
                    let now = u64::try_from(vitals.0.since.elapsed().as_millis());
                    vitals
                        .0
                        .beat
                        .store(now.unwrap_or(u64::MAX), Ordering::Relaxed);
                    tokio::time::sleep(BEAT).await;
                }
            })
        });
    }

    /// Logs when the heartbeat stops and when it resumes, from a thread that no task can block.
    fn watch(&self) {
        let inner = Arc::downgrade(&self.0);
        let watch = move || {
            let mut was_silent = false;
            while let Some(inner) = inner.upgrade() {
                let silent = Self(inner).silent();
                match (was_silent, silent) {
                    (false, Some(silent)) => {
                        let seconds = silent.as_secs();
                        tracing::error!(seconds, "the async workers make no progress");
                    }
                    (true, None) => tracing::warn!("the async workers make progress again"),
                    _ => {}
                }
                was_silent = silent.is_some();
                std::thread::sleep(BEAT);
            }
        };
        if let Err(error) = named(Task::Watchdog, "").start_thread(watch) {
            tracing::warn!(%error, "cannot start the watchdog thread; a hanging process will not be logged");
        }
    }

    /// Returns the time since the last heartbeat, if it is too long.
    fn silent(&self) -> Option<Duration> {
        let last = Duration::from_millis(self.0.beat.load(Ordering::Relaxed));
        let silent = self.0.since.elapsed().saturating_sub(last);
        (silent > self.0.silence).then_some(silent)
    }

    /// Checks that the process is alive: no vital task keeps failing, and the workers make progress. An unreachable API server
    /// and a leader in another process do not count: a restart would not help.
    ///
    /// # Errors
    /// The problems, one per line.
    pub fn check(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        if let Some(silent) = self.silent() {
            let seconds = silent.as_secs();
            wrong.push(format!(
                "the async workers have made no progress for {seconds} s"
            ));
        }
        wrong.extend(FATAL_ERROR.borrow().clone());
        for (task, error) in tally::failing(PATIENCE) {
            wrong.push(format!("task {} keeps failing: {error}", task.name()));
        }
        if wrong.is_empty() {
            Ok(())
        } else {
            Err(wrong.join("\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn workers_that_are_all_blocked_are_noticed_from_outside_and_recover() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let vitals = Vitals::with(Duration::from_millis(1500));
        let (one, all) = (mpsc::channel::<()>(), vitals.clone());
        let (release, blocked) = one;
        let blocked = Arc::new(std::sync::Mutex::new(blocked));
        runtime.block_on(async { all.beat() });
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(vitals.check(), Ok(()));
        for _ in 0..2 {
            let blocked = Arc::clone(&blocked);
            runtime.spawn(async move {
                // Blocks until the sender is dropped.
                let _ = blocked.lock().map(|blocked| blocked.recv());
            });
        }
        let until = |wanted: bool| {
            let start = Instant::now();
            while vitals.check().is_ok() != wanted {
                assert!(start.elapsed() < Duration::from_secs(30), "{vitals:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        until(false);
        let why = vitals.check().unwrap_err();
        assert!(
            why.starts_with("the async workers have made no progress for "),
            "{why}"
        );
        drop(release);
        until(true);
        runtime.shutdown_background();
    }
}
