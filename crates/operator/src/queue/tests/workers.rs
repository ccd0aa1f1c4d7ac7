//! The workers of a queue, under paused time: their number, and passes that panic.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_pass_that_panics_frees_its_key_and_is_retried() {
    let queue = queue();
    let runs = Arc::new(AtomicUsize::new(0));
    let workers = QueueWorkers::start("pond", queue.clone(), 1, |_| {}, {
        let runs = runs.clone();
        move |taken| {
            let run = runs.fetch_add(1, Ordering::SeqCst);
            async move {
                let taken = taken;
                tokio::task::yield_now().await;
                assert!(run > 0, "the first pass of {} panics", taken.key);
            }
            .boxed()
        }
    });
    queue.add("a", Lane::Changed);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        (runs.load(Ordering::SeqCst), workers.count(), queue.busy()),
        (2, 1, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn workers_shrink_without_breaking_off_a_pass_and_grow_again() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    let finished = Arc::new(AtomicUsize::new(0));
    let workers = QueueWorkers::start("pond", queue.clone(), 4, |_| {}, {
        let finished = finished.clone();
        move |taken| {
            let finished = finished.clone();
            async move {
                sleep(Duration::from_secs(10)).await;
                finished.fetch_add(1, Ordering::SeqCst);
                taken.done();
            }
            .boxed()
        }
    });
    for key in 0..20 {
        queue.add(key, Lane::Changed);
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(queue.busy(), 4);
    workers.resize(1);
    sleep(Duration::from_secs(10)).await;
    assert_eq!(
        (
            finished.load(Ordering::SeqCst),
            queue.busy(),
            workers.count()
        ),
        (4, 1, 1)
    );
    workers.resize(3);
    sleep(Duration::from_secs(1)).await;
    assert_eq!(queue.busy(), 3);
    workers.stop().await;
    assert_eq!((queue.busy(), finished.load(Ordering::SeqCst)), (0, 7));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_taken_at_once_while_fewer_passes_run_than_there_are_workers() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    let workers = QueueWorkers::start(
        "pond",
        queue.clone(),
        3,
        |_| {},
        |taken| {
            async move {
                sleep(Duration::from_secs(10)).await;
                taken.done();
            }
            .boxed()
        },
    );
    for (key, busy) in [(0, 1), (1, 2), (2, 3), (3, 3)] {
        queue.add(key, Lane::Changed);
        sleep(Duration::from_millis(1)).await;
        assert_eq!((workers.count(), queue.busy()), (3, busy), "{key}");
    }
    // The same applies after passes have ended and the number of workers has changed.
    sleep(Duration::from_secs(30)).await;
    assert_eq!(queue.busy(), 0);
    workers.resize(4);
    for busy in 1..=4 {
        queue.add(10 + busy, Lane::Changed);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(queue.busy(), busy);
    }
    workers.stop().await;
    assert_eq!(queue.busy(), 0);
}

#[tokio::test(start_paused = true)]
async fn workers_grow_while_keys_wait_and_go_when_they_have_been_idle() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let workers = WorkerCount { least: 2, most: 6 };
    let counted = {
        let reported = reported.clone();
        move |count| reported.lock().push(count)
    };
    let workers = QueueWorkers::start("pond", queue.clone(), workers, counted, |taken| {
        async move {
            sleep(Duration::from_secs(1)).await;
            taken.done();
        }
        .boxed()
    });
    assert_eq!(workers.count(), 2);
    for key in 0..60 {
        queue.add(key, Lane::Changed);
    }
    sleep(Duration::from_millis(500)).await;
    assert_eq!((workers.count(), queue.busy()), (6, 6));
    // Ten rounds of one second, the first started by two workers.
    sleep(Duration::from_secs(11)).await;
    assert_eq!((queue.depth(), queue.busy()), (0, 0));
    assert_eq!(workers.count(), 6);
    sleep(SURPLUS_IDLE).await;
    assert_eq!(workers.count(), 2);
    assert_eq!(*reported.lock(), [2, 3, 4, 5, 6, 5, 4, 3, 2]);
    // The remaining workers take new keys.
    queue.add(60, Lane::Changed);
    sleep(Duration::from_millis(1)).await;
    assert_eq!((workers.count(), queue.busy()), (2, 1));
    workers.resize(1);
    assert_eq!(workers.count(), 1);
    workers.stop().await;
    assert_eq!(queue.busy(), 0);
}
