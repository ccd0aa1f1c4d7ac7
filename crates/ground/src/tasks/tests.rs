//! The consequences of a task's end.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use super::*;

#[tokio::test(start_paused = true)]
async fn a_kept_task_that_panics_or_ends_is_restarted_with_backoff_and_keeps_its_state() {
    let stop = CancellationToken::new();
    let before = counts(Task::Publisher);
    let started = Instant::now();
    let (sender, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let task = named(Task::Publisher, "pond").keep(Ends::with(&stop), 0_u32, {
        let stop = stop.clone();
        move |runs: &mut u32| {
            let (sender, stop) = (sender.clone(), stop.clone());
            *runs += 1;
            let _ = sender.send((*runs, started.elapsed()));
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
    assert_eq!((run, at.as_millis()), (3, 600), "the second delay doubles");
    let after = counts(Task::Publisher);
    assert!(after.failures >= before.failures + 2 && after.restarts >= before.restarts + 2);
    stop.cancel();
    task.await.unwrap();
    assert_eq!(runs.recv().await, None, "restarted after its end");
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
    assert_eq!(taken.load(Ordering::SeqCst), 1, "the end was not handled");
    let panicked = driver().start_or(Ends::with(&stop), async { panic!("no") }, otherwise(&taken));
    panicked.await.unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 2);
    stop.cancel();
    let stopped = driver().start_or(Ends::with(&stop), async {}, otherwise(&taken));
    stopped.await.unwrap();
    assert_eq!(taken.load(Ordering::SeqCst), 2);
}
