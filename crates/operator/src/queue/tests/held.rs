//! Queues that are held or paused.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_paused_queue_gives_nothing_at_all_and_charges_nobody() {
    let queue = queue();
    queue.add("failed", Lane::Changed);
    drop(ready(&queue));
    queue.retry("failed");
    queue.let_through(&"ends", true);
    queue.hold(true);
    queue.pause(true);
    queue.add("ends", Lane::Changed);
    queue.add("other", Lane::Changed);
    let waiting = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take().await.map(|taken| taken.key) }
    });
    sleep(Duration::from_hours(1)).await;
    assert!(!waiting.is_finished());
    assert_eq!(queue.failures(&"failed"), 1);
    queue.pause(false);
    assert_eq!(
        waiting.await.unwrap(),
        Some("ends"),
        "the paused take got a held key"
    );
    assert_eq!(drain(&queue), [""; 0]);
    queue.hold(false);
    assert_eq!(drain(&queue), ["other", "failed"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_queue_gives_nothing_and_loses_nothing() {
    let queue = queue();
    queue.add("running", Lane::Changed);
    let running = ready(&queue).unwrap();
    queue.hold(true);
    for key in ["a", "b", "a", "running"] {
        queue.add(key, Lane::Changed);
    }
    queue.add_after("late", Duration::from_secs(3));
    let workers: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.take().await.unwrap().key })
        })
        .collect();
    sleep(Duration::from_secs(5)).await;
    running.done();
    assert_eq!((queue.depth(), queue.busy()), (4, 0));
    queue.hold(false);
    let mut taken = Vec::new();
    for worker in workers {
        taken.push(
            timeout(Duration::from_millis(1), worker)
                .await
                .unwrap()
                .unwrap(),
        );
    }
    taken.extend(drain(&queue));
    taken.sort_unstable();
    assert_eq!(taken, ["a", "b", "late", "running"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_queue_lets_some_keys_through_until_they_are_removed() {
    let queue = queue();
    queue.hold(true);
    queue.let_through(&"ending", true);
    for key in ["a", "ending", "b"] {
        queue.add(key, Lane::Changed);
    }
    let deletion = queue.take().await.unwrap();
    assert_eq!(deletion.key, "ending");
    queue.retry("ending");
    deletion.done();
    let again = timeout(Duration::from_secs(1), queue.take()).await.unwrap();
    assert_eq!(again.unwrap().key, "ending");
    assert!(ready(&queue).is_none());
    queue.remove(&"ending");
    queue.add("ending", Lane::Changed);
    assert!(
        ready(&queue).is_none(),
        "the new object of that name is not held"
    );
    queue.hold(false);
    assert_eq!(drain(&queue), ["a", "b", "ending"]);
}
