//! The answer of `/livez`.
//!
//! ```text
//!  heartbeat, a task of each runtime ──► beat ◄── checked with a clock of the operating system ── watchdog, a thread: logs
//!                                             ◄──────────────────────────────────────────────── check(): /livez
//! ```

use std::{
    fmt,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Ends, FATAL_ERROR, Task, named, tally};

/// The interval of a heartbeat.
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
    /// The heartbeats of all runtimes; that of a runtime that has ended is gone.
    beats: Mutex<Vec<Weak<Beat>>>,
    silence: Duration,
}

/// The heartbeat of one runtime.
struct Beat {
    /// What makes no progress without it.
    what: &'static str,
    /// The time of the last one, in milliseconds after `since`.
    last: AtomicU64,
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Vitals").field(&self.check()).finish()
    }
}

impl Vitals {
    /// Starts the heartbeat of the async workers on the current tokio runtime, and the thread that watches it.
    pub fn start() -> Self {
        let vitals = Self::with(SILENCE);
        vitals.follow("the async workers");
        vitals.watch();
        vitals
    }

    fn with(silence: Duration) -> Self {
        Self(Arc::new(Inner {
            since: Instant::now(),
            beats: Mutex::default(),
            silence,
        }))
    }

    /// Starts a heartbeat on the current tokio runtime, which counts until the runtime ends. `what` runs there, as in
    /// `{what} made no progress`.
    pub fn follow(&self, what: &'static str) {
        let state = (self.clone(), self.add(what));
        named(Task::Heartbeat, what).keep(Ends::never(), state, |(vitals, beat)| {
            Box::pin(async move {
                loop {
                    beat.last.store(vitals.now(), Ordering::Relaxed);
                    tokio::time::sleep(BEAT).await;
                }
            })
        });
    }

    /// Adds a heartbeat that counts until it is dropped.
    fn add(&self, what: &'static str) -> Arc<Beat> {
        let last = AtomicU64::new(self.now());
        let beat = Arc::new(Beat { what, last });
        let mut beats = self.0.beats.lock();
        beats.push(Arc::downgrade(&beat));
        beat
    }

    /// Returns the time since the start, in milliseconds.
    fn now(&self) -> u64 {
        let now = u64::try_from(self.0.since.elapsed().as_millis());
        now.unwrap_or(u64::MAX)
    }

    /// Logs when a heartbeat stops and when all have resumed, from a thread that no task can block.
    fn watch(&self) {
        let inner = Arc::downgrade(&self.0);
        let watch = move || {
            let mut were_silent = Vec::new();
            while let Some(inner) = inner.upgrade() {
                let silent = Self(inner).silent();
                let names: Vec<_> = silent.iter().map(|(what, _)| *what).collect();
                for (what, silent) in silent {
                    if !were_silent.contains(&what) {
                        let seconds = silent.as_secs();
                        tracing::error!(what, seconds, "a runtime makes no progress");
                    }
                }
                for what in were_silent.iter().filter(|what| !names.contains(what)) {
                    tracing::warn!(what, "a runtime makes progress again");
                }
                were_silent = names;
                std::thread::sleep(BEAT);
            }
        };
        if let Err(error) = named(Task::Watchdog, "").start_thread(watch) {
            tracing::warn!(%error, "cannot start the watchdog thread; a hanging process will not be logged");
        }
    }

    /// Returns what has had no heartbeat for too long, with the time since the last one.
    fn silent(&self) -> Vec<(&'static str, Duration)> {
        let now = self.now();
        let mut beats = self.0.beats.lock();
        beats.retain(|beat| beat.strong_count() > 0);
        let known = beats.iter().filter_map(Weak::upgrade);
        let ages = known.map(|beat| {
            let last = beat.last.load(Ordering::Relaxed);
            (beat.what, Duration::from_millis(now.saturating_sub(last)))
        });
        ages.filter(|(_, silent)| *silent > self.0.silence)
            .collect()
    }

    /// Checks that the process is alive: no vital task keeps failing, and every runtime makes progress. An unreachable API server
    /// and a leader in another process do not count: a restart would not help.
    ///
    /// # Errors
    /// The problems, one per line.
    pub fn check(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        for (what, silent) in self.silent() {
            let seconds = silent.as_secs();
            wrong.push(format!("{what} made no progress for {seconds} s"));
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

    #[tokio::test(start_paused = true)]
    async fn a_silent_runtime_is_reported_beside_one_that_makes_progress_and_forgotten_when_it_ends()
     {
        let vitals = Vitals::with(SILENCE);
        vitals.follow("the async workers");
        let silent = vitals.add("leader election");
        tokio::time::sleep(SILENCE.saturating_sub(BEAT)).await;
        assert_eq!(vitals.check(), Ok(()));
        tokio::time::sleep(BEAT * 3).await;
        let why = vitals.check().unwrap_err();
        assert_eq!(why, "leader election made no progress for 22 s");
        silent.last.store(vitals.now(), Ordering::Relaxed);
        assert_eq!(vitals.check(), Ok(()));
        tokio::time::sleep(SILENCE * 2).await;
        assert!(vitals.check().is_err());
        drop(silent);
        assert_eq!(vitals.check(), Ok(()));
    }

    #[test]
    fn the_heartbeat_of_a_runtime_ends_with_it() {
        let vitals = Vitals::with(Duration::ZERO);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { vitals.follow("leader election") });
        // Outside of `block_on`, nothing polls the tasks of this runtime.
        std::thread::sleep(Duration::from_millis(20));
        assert!(vitals.check().is_err());
        drop(runtime);
        assert_eq!(vitals.check(), Ok(()));
    }

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
        let blocked = Arc::new(Mutex::new(blocked));
        runtime.block_on(async { all.follow("the async workers") });
        let until = |wanted: bool| {
            let start = Instant::now();
            while vitals.check().is_ok() != wanted {
                assert!(start.elapsed() < Duration::from_secs(30), "{vitals:?}");
                std::thread::sleep(Duration::from_millis(20));
            }
        };
        until(true);
        for _ in 0..2 {
            let blocked = Arc::clone(&blocked);
            runtime.spawn(async move {
                // Blocks until the sender is dropped.
                let _ = blocked.lock().recv();
            });
        }
        until(false);
        let why = vitals.check().unwrap_err();
        assert!(
            why.starts_with("the async workers made no progress for "),
            "{why}"
        );
        drop(release);
        until(true);
        runtime.shutdown_background();
    }
}
