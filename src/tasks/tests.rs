//! What follows the end of a task, and that no task starts elsewhere.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use super::*;

/// What a source must not call outside of this module.
const SPAWNS: [&str; 7] = [
    "tokio::spawn",
    "task::spawn",
    "spawn_blocking",
    "spawn_local",
    ".spawn(",
    "thread::spawn",
    "thread::Builder",
];

/// Every source of the crate that is no test, with its text up to its tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if name != "tests" && name != "tasks" {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|end| end == "rs")
            && !["tests.rs", "testing.rs"].contains(&&*name)
        {
            let text = std::fs::read_to_string(&path).unwrap();
            let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            found.push((path, own.to_owned()));
        }
    }
}

#[test]
fn no_task_starts_outside_of_this_module() {
    let mut found = Vec::new();
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src"),
        &mut found,
    );
    assert!(found.len() > 100, "{}", found.len());
    let mut strays = Vec::new();
    for (path, text) in &found {
        for (number, line) in text.lines().enumerate() {
            if SPAWNS.iter().any(|spawn| line.contains(spawn)) {
                strays.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    number + 1,
                    line.trim()
                ));
            }
        }
    }
    assert!(
        strays.is_empty(),
        "start them with `tasks::named`:\n{}",
        strays.join("\n")
    );
    for task in Task::ALL {
        let mentions = [",", ")"].map(|end| format!("Task::{task:?}{end}"));
        let is_used = |text: &str| mentions.iter().any(|mention| text.contains(mention));
        let is_used = found.iter().any(|(_, text)| is_used(text));
        let of_vitals = matches!(task, Task::Heartbeat | Task::Watchdog);
        assert!(is_used || of_vitals, "nothing starts {task:?}");
    }
}

#[test]
fn the_committed_table_of_tasks_is_current() {
    crate::testing::assert_document("docs/tasks.md", &markdown());
}

#[tokio::test(start_paused = true)]
async fn a_kept_task_that_panics_or_ends_is_restarted_with_backoff_and_keeps_its_state() {
    let stop = CancellationToken::new();
    let before = counts(Task::Publisher);
    let started = Instant::now();
    let (told, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let task = named(Task::Publisher, "pond").keep(Ends::with(&stop), 0_u32, {
        let stop = stop.clone();
        move |runs: &mut u32| {
            let (told, stop) = (told.clone(), stop.clone());
            *runs += 1;
            let _ = told.send((*runs, started.elapsed()));
            Box::pin(async move {
                match *runs {
                    1 => panic!("once"),
                    2 => {}
                    _ => stop.cancelled().await,
                }
            })
        }
    });
    assert_eq!(runs.recv().await, Some((1, Duration::ZERO)));
    let (run, at) = runs.recv().await.unwrap();
    assert_eq!((run, at.as_millis()), (2, 200));
    let (run, at) = runs.recv().await.unwrap();
    assert_eq!((run, at.as_millis()), (3, 600), "twice as long");
    let after = counts(Task::Publisher);
    assert!(after.failures >= before.failures + 2 && after.restarts >= before.restarts + 2);
    stop.cancel();
    task.await.unwrap();
    assert_eq!(runs.recv().await, None, "it ended, and was not restarted");
}

#[tokio::test(start_paused = true)]
async fn a_backoff_ends_when_the_task_is_to_stop() {
    let stop = CancellationToken::new();
    let task = named(Task::Autoscaler, "").keep(Ends::with(&stop), (), |()| {
        Box::pin(async { panic!("always") })
    });
    tokio::time::sleep(Duration::from_mins(2)).await;
    let stopped = Instant::now();
    stop.cancel();
    task.await.unwrap();
    assert_eq!(stopped.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn a_task_that_finishes_gives_its_panic_to_who_waits_and_is_counted() {
    let before = counts(Task::Notices);
    let done = named(Task::Notices, "").start(async { 7 });
    assert_eq!(done.await.unwrap(), 7);
    let failed = named(Task::Notices, "").start(async { panic!("no") });
    assert!(failed.await.unwrap_err().is_panic());
    let after = counts(Task::Notices);
    assert_eq!(after.failures, before.failures + 1);
    assert_eq!(after.running, before.running);
}

#[tokio::test]
async fn the_consequence_of_a_failure_is_taken_once_and_not_when_the_end_was_asked_for() {
    let stop = CancellationToken::new();
    let taken = Arc::new(AtomicU32::new(0));
    let otherwise = |taken: &Arc<AtomicU32>| {
        let taken = Arc::clone(taken);
        move |error: String| {
            assert!(!error.is_empty());
            taken.fetch_add(1, Ordering::SeqCst);
        }
    };
    let driver = || named(Task::Driver, "pond");
    let ended = driver().start_or(Ends::with(&stop), async {}, otherwise(&taken));
    ended.await.unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 1, "it ended by itself");
    let panicked = driver().start_or(Ends::with(&stop), async { panic!("no") }, otherwise(&taken));
    panicked.await.unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 2);
    stop.cancel();
    let stopped = driver().start_or(Ends::with(&stop), async {}, otherwise(&taken));
    stopped.await.unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 2);
}
