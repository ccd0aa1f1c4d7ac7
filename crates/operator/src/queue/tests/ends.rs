//! Removed keys, cancelled takes and the shutdown of the queue: no state is left, and no key is lost.

use super::*;

#[tokio::test(start_paused = true)]
async fn an_idle_key_costs_nothing() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    for key in 0..1000 {
        queue.add(key, Lane::Changed);
    }
    while let Some(taken) = ready(&queue) {
        taken.done();
    }
    assert!(
        timeout(Duration::from_secs(70), queue.take())
            .await
            .is_err()
    );
    assert_eq!((queue.known(), queue.depth(), queue.delayed()), (0, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_removed_key_leaves_no_trace_but_may_come_back() {
    let queue = queue();
    queue.add("a", Lane::Changed);
    queue.retry("b");
    queue.remove(&"a");
    queue.remove(&"b");
    assert_eq!((queue.known(), queue.depth(), queue.delayed()), (0, 0, 0));
    queue.add("a", Lane::Changed);
    let taken = ready(&queue).unwrap();
    queue.remove(&"a");
    queue.retry("a");
    queue.add_after("a", Duration::from_secs(1));
    taken.done();
    assert_eq!((queue.known(), queue.busy()), (0, 0));
    queue.add("a", Lane::Changed);
    let taken = ready(&queue).unwrap();
    queue.remove(&"a");
    queue.add("a", Lane::Changed);
    taken.done();
    assert_eq!(drain(&queue), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_ends_every_take() {
    let queue = queue();
    let waiting: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take().await.is_none() })
        })
        .collect();
    queue.add_after("late", Duration::from_secs(1));
    tokio::task::yield_now().await;
    queue.shutdown();
    for task in waiting {
        assert!(task.await.unwrap());
    }
    queue.add("a", Lane::Changed);
    assert!(queue.take().await.is_none());
    assert_eq!(queue.known(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_take_loses_no_key() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    let entropy = Entropy::seeded(11);
    let mut seen = 0;
    for key in 0..500 {
        let patient = tokio::spawn({
            let queue = queue.clone();
            async move { timeout(Duration::from_secs(5), queue.take()).await.is_ok() }
        });
        let hasty = tokio::spawn({
            let queue = queue.clone();
            async move { queue.take().await.is_some() }
        });
        for _ in 0..entropy.bits() % 4 {
            tokio::task::yield_now().await;
        }
        queue.add(key, Lane::Changed);
        for _ in 0..entropy.bits() % 3 {
            tokio::task::yield_now().await;
        }
        hasty.abort();
        let by_hasty = hasty.await.is_ok_and(|took| took);
        let by_patient = patient.await.unwrap();
        assert!(by_hasty != by_patient, "{key}");
        seen += 1;
    }
    assert_eq!(seen, 500);
}
