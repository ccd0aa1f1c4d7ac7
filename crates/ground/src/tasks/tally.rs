//! The counters of tasks: one set for the process, since tasks belong to the process.

use std::{
    sync::atomic::{AtomicI64, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::Task;

/// How long a task has to run after a failure before it counts as recovered.
const STEADY: Duration = Duration::from_secs(10);

/// The counters of one task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Starts, including restarts.
    pub started: u64,
    /// Runs in progress.
    pub running: i64,
    /// Panics and unexpected ends.
    pub failures: u64,
    /// Restarts.
    pub restarts: u64,
}

/// The live counters of one task.
struct TaskCounters {
    started: AtomicU64,
    running: AtomicI64,
    failures: AtomicU64,
    restarts: AtomicU64,
    streak: Mutex<FailureStreak>,
}

static TALLIES: [TaskCounters; Task::ALL.len()] = [const { TaskCounters::new() }; Task::ALL.len()];

impl TaskCounters {
    const fn new() -> Self {
        Self {
            started: AtomicU64::new(0),
            running: AtomicI64::new(0),
            failures: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            streak: Mutex::new(FailureStreak::new()),
        }
    }

    fn of(task: Task) -> &'static Self {
        // A task's number is its index in `ALL`.
        &TALLIES[task as usize]
    }
}

/// Returns the counters of a task.
pub fn counts(task: Task) -> Counts {
    let tally = TaskCounters::of(task);
    Counts {
        started: tally.started.load(Ordering::Relaxed),
        running: tally.running.load(Ordering::Relaxed),
        failures: tally.failures.load(Ordering::Relaxed),
        restarts: tally.restarts.load(Ordering::Relaxed),
    }
}

/// Counts a task as running until it is dropped.
#[derive(Debug)]
pub(crate) struct Running(Task);

impl Running {
    pub(crate) fn new(task: Task) -> Self {
        let tally = TaskCounters::of(task);
        tally.started.fetch_add(1, Ordering::Relaxed);
        tally.running.fetch_add(1, Ordering::Relaxed);
        Self(task)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        TaskCounters::of(self.0)
            .running
            .fetch_sub(1, Ordering::Relaxed);
    }
}

/// Counts a failure of a task.
pub(crate) fn failed(task: Task, error: &str) {
    let tally = TaskCounters::of(task);
    tally.failures.fetch_add(1, Ordering::Relaxed);
    if task.is_vital() {
        tally.streak.lock().failed(error, Instant::now());
    }
}

/// Counts a restart of a failed task.
pub(crate) fn restarted(task: Task) {
    let tally = TaskCounters::of(task);
    tally.restarts.fetch_add(1, Ordering::Relaxed);
    if task.is_vital() {
        tally.streak.lock().restarted(Instant::now());
    }
}

/// Returns the vital tasks that have been failing for longer than `patience`, with the last error of each.
pub(crate) fn failing(patience: Duration) -> Vec<(Task, String)> {
    let vital = Task::ALL.iter().filter(|task| task.is_vital());
    let failing = vital.filter_map(|task| {
        let error = TaskCounters::of(*task)
            .streak
            .lock()
            .failing(patience, Instant::now())?;
        Some((*task, error))
    });
    failing.collect()
}

/// The failures of a task since it last recovered.
#[derive(Clone, Debug, Default)]
struct FailureStreak {
    /// The time of the first failure, and the error of the last one.
    failing: Option<(Instant, String)>,
    /// When the task started running again; `None` while it is not running.
    running_since: Option<Instant>,
}

impl FailureStreak {
    const fn new() -> Self {
        Self {
            failing: None,
            running_since: None,
        }
    }

    fn failed(&mut self, error: &str, now: Instant) {
        let since = match &self.failing {
            Some((since, _)) if !self.is_over(now) => *since,
            _ => now,
        };
        self.failing = Some((since, error.to_owned()));
        self.running_since = None;
    }

    fn restarted(&mut self, now: Instant) {
        self.running_since = Some(now);
    }

    fn is_over(&self, now: Instant) -> bool {
        self.running_since
            .is_some_and(|since| now.saturating_duration_since(since) >= STEADY)
    }

    fn failing(&self, patience: Duration, now: Instant) -> Option<String> {
        let (since, error) = self.failing.as_ref()?;
        let lasts = now.saturating_duration_since(*since) > patience;
        (lasts && !self.is_over(now)).then(|| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_fails_for_as_long_as_it_does_not_stay_up() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let patience = Duration::from_mins(1);
        let mut streak = FailureStreak::new();
        assert_eq!(streak.failing(patience, at(0)), None);
        for second in (0..90).step_by(9) {
            streak.failed(&format!("at {second}"), at(second));
            streak.restarted(at(second + 1));
        }
        assert_eq!(
            streak.failing(patience, at(60)),
            None,
            "reported before 60 s of failures"
        );
        assert_eq!(streak.failing(patience, at(91)).as_deref(), Some("at 81"));
        assert_eq!(
            streak.failing(patience, at(92)),
            None,
            "it has run for ten seconds"
        );
        // The next failure starts a new streak.
        streak.failed("later", at(200));
        assert_eq!(streak.failing(patience, at(259)), None);
        assert_eq!(streak.failing(patience, at(261)).as_deref(), Some("later"));
    }
}
