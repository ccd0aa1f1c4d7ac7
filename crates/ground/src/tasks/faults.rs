//! Fault injection for tests: ends running tasks by name. Compiled into debug builds only, so that a release cannot be made to
//! fail.
//!
//! A test sets `ORK_TASK_FAULTS` to a file and writes lines into it, `TASK` or `TASK OF`, where `OF` is a part of the task's
//! subject. Each line makes one task panic: a running one, or the next one that starts. Lines that were read are removed. If the
//! task ends by itself at the same moment, its line waits for the next one.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    pin::Pin,
    sync::{Arc, LazyLock},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Task;

/// The environment variable that names the file.
const VARIABLE: &str = "ORK_TASK_FAULTS";
/// The interval at which the file is read.
const LOOK: Duration = Duration::from_millis(25);

/// The fault points of the process; none unless a test requested them.
static POINTS: LazyLock<Option<Arc<Points>>> = LazyLock::new(|| {
    let path = PathBuf::from(std::env::var_os(VARIABLE)?);
    let points = Arc::new(Points::default());
    // The first task reads it: a file that was there before hits what runs only once, at the start.
    points.look(&path);
    let followed = Arc::clone(&points);
    let follow = move || loop {
        followed.look(&path);
        std::thread::sleep(LOOK);
    };
    // Without the thread no fault is injected, and the test that requested it fails.
    let _ = std::thread::Builder::new().spawn(follow);
    Some(points)
});

/// Runs `work`, and panics instead once a fault hits the task.
pub(crate) async fn struck<F, T>(task: Task, of: &str, mut work: Pin<Box<F>>) -> T
where
    F: Future<Output = T> + ?Sized,
{
    let Some(points) = &*POINTS else {
        return work.await;
    };
    let point = points.enter(task, of);
    tokio::select! {
        biased;
        () = point.struck.notified() => {
            point.strike();
            std::panic::resume_unwind(Box::new("a fault on purpose"))
        }
        done = &mut work => done,
    }
}

/// Panics if a test requested it. For code that is not a task of its own.
pub(crate) fn point(name: &str, of: &str) {
    if let Some(points) = &*POINTS
        && points.0.lock().take(name, of).is_some()
    {
        std::panic::resume_unwind(Box::new("a fault on purpose"));
    }
}

#[derive(Default)]
struct Points(Mutex<FaultsState>);

#[derive(Default)]
struct FaultsState {
    last: u64,
    running: Vec<(u64, Task, Box<str>, Arc<Notify>)>,
    /// Lines that have hit a task which has not panicked yet.
    hit: BTreeMap<u64, String>,
    /// Lines that have not hit a task yet.
    pending: Vec<String>,
}

/// A running task.
struct RunningTask {
    id: u64,
    points: Arc<Points>,
    struck: Arc<Notify>,
}

impl Points {
    fn enter(self: &Arc<Self>, task: Task, of: &str) -> RunningTask {
        let struck = Arc::new(Notify::new());
        let mut state = self.0.lock();
        state.last += 1;
        let id = state.last;
        if let Some(line) = state.take(task.name(), of) {
            state.hit.insert(id, line);
            struck.notify_one();
        }
        state
            .running
            .push((id, task, of.into(), Arc::clone(&struck)));
        RunningTask {
            id,
            points: Arc::clone(self),
            struck,
        }
    }

    fn look(&self, path: &PathBuf) {
        // Renamed first, so that lines written in the meantime are not lost.
        let taken = path.with_extension("taken");
        if std::fs::rename(path, &taken).is_err() {
            return;
        }
        let lines = std::fs::read_to_string(&taken).unwrap_or_default();
        let mut state = self.0.lock();
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let meant = state
                .running
                .iter()
                .position(|(_, task, of, _)| is_meant(line, task.name(), of));
            match meant {
                // The entry is removed now, so that no other line hits the same task.
                Some(at) => {
                    let (id, .., struck) = state.running.remove(at);
                    state.hit.insert(id, line.to_owned());
                    struck.notify_one();
                }
                None => state.pending.push(line.to_owned()),
            }
        }
    }
}

impl FaultsState {
    /// Removes the line that was pending for this task, if there is one.
    fn take(&mut self, name: &str, of: &str) -> Option<String> {
        let at = self
            .pending
            .iter()
            .position(|line| is_meant(line, name, of));
        at.map(|at| self.pending.remove(at))
    }
}

impl RunningTask {
    /// Records that the line that hit it makes it panic.
    fn strike(&self) {
        self.points.0.lock().hit.remove(&self.id);
    }
}

impl Drop for RunningTask {
    fn drop(&mut self) {
        let mut state = self.points.0.lock();
        state.running.retain(|(id, ..)| *id != self.id);
        // It has ended before it could panic.
        let missed = state.hit.remove(&self.id);
        state.pending.extend(missed);
    }
}

fn is_meant(line: &str, name: &str, of: &str) -> bool {
    let (task, part) = line.split_once(' ').unwrap_or((line, ""));
    task == name && of.contains(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_strikes_one_task_of_that_name_and_waits_for_it_where_none_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults");
        let points = Arc::new(Points::default());
        let pond = points.enter(Task::Driver, "waters/pond");
        let lake = points.enter(Task::Driver, "waters/lake");
        std::fs::write(&path, "driver lake\nelector\n").unwrap();
        points.look(&path);
        assert!(lake.struck.notified().now_or_never().is_some());
        assert!(pond.struck.notified().now_or_never().is_none());
        assert!(!path.exists());
        let elector = points.enter(Task::Elector, "");
        assert!(elector.struck.notified().now_or_never().is_some());
        let again = points.enter(Task::Elector, "");
        assert!(again.struck.notified().now_or_never().is_none());
        lake.strike();
        elector.strike();
        drop((pond, lake, elector, again));
        let state = points.0.lock();
        assert!(state.running.is_empty() && state.pending.is_empty());
    }

    #[test]
    fn a_line_that_hit_a_task_at_its_end_waits_for_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("faults");
        let points = Arc::new(Points::default());
        let first = points.enter(Task::HttpConnection, "");
        std::fs::write(&path, "http-connection \n").unwrap();
        points.look(&path);
        drop(first);
        let next = points.enter(Task::HttpConnection, "");
        assert!(next.struck.notified().now_or_never().is_some());
    }

    use futures::FutureExt;
}
