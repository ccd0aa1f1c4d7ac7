//! What `/livez` answers.
//!
//! ```text
//!  heartbeat, a task of the workers ──► beat ◄── looked at by a clock of the operating system ── watchdog, a thread: logs
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

use super::{ENDING, Ends, Task, named, tally};

/// How often the heartbeat beats.
const BEAT: Duration = Duration::from_secs(1);
/// Longest time without one. A single pass may take seconds, and a machine may be busy.
const SILENCE: Duration = Duration::from_secs(20);
/// How long a vital task may fail before a restart of the process is better.
const PATIENCE: Duration = Duration::from_mins(1);

/// Whether the process is alive. Clones are the same one.
#[derive(Clone)]
pub struct Vitals(Arc<Inner>);

struct Inner {
    since: Instant,
    /// Milliseconds after `since` of the last heartbeat.
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

    /// Logs silence when it begins and when it is over, from a thread that no task can hold up.
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
            tracing::warn!(%error, "no thread for the watchdog: a process that hangs is not logged");
        }
    }

    /// How long the heartbeat has been silent, where that is too long.
    fn silent(&self) -> Option<Duration> {
        let last = Duration::from_millis(self.0.beat.load(Ordering::Relaxed));
        let silent = self.0.since.elapsed().saturating_sub(last);
        (silent > self.0.silence).then_some(silent)
    }

    /// Whether the process is alive: none of its vital tasks keeps failing, and its workers make progress. An API server that
    /// is unreachable and another process that leads are no reason to be restarted, and do not count.
    ///
    /// # Errors
    /// What is wrong, a line each.
    pub fn check(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        if let Some(silent) = self.silent() {
            let seconds = silent.as_secs();
            wrong.push(format!(
                "the async workers have made no progress for {seconds} s"
            ));
        }
        wrong.extend(ENDING.borrow().clone());
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
                // Until the sender is gone.
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
