//! The work queue, under paused time and once with real threads.

mod ends;
mod held;
mod turns;
mod workers;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::FutureExt;
use parking_lot::Mutex;
use tokio::time::{Instant, advance, sleep, timeout};

use super::*;

/// Implements `QueueKey` for types whose keys are all in one group.
macro_rules! keys_of_one_group {
    ($($key:ty),*) => {
        $(impl QueueKey for $key {
            type Group = ();

            fn group(&self) -> &() {
                &()
            }
        })*
    };
}
keys_of_one_group!(&str, i32, u32, u64, usize);

fn queue() -> WorkQueue<&'static str> {
    WorkQueue::new(Entropy::seeded(7))
}

/// Takes a key if one is ready now.
fn ready<K: QueueKey>(queue: &WorkQueue<K>) -> Option<TakenKey<K>> {
    queue.take().now_or_never().flatten()
}

fn drain(queue: &WorkQueue<&'static str>) -> Vec<&'static str> {
    std::iter::from_fn(|| ready(queue).map(|taken| taken.key)).collect()
}

#[tokio::test(start_paused = true)]
async fn keys_come_in_order_and_once() {
    let queue = queue();
    for key in ["b", "a", "b", "c", "a"] {
        queue.add(key, Lane::Changed);
    }
    assert_eq!(queue.depth(), 3);
    assert_eq!(drain(&queue), ["b", "a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn changed_keys_pass_those_in_resync_and_a_changed_one_moves_up() {
    let queue = queue();
    for key in ["r1", "r2", "r3"] {
        queue.add(key, Lane::Resync);
    }
    queue.add("c1", Lane::Changed);
    queue.add("r3", Lane::Changed);
    queue.add("c1", Lane::Resync);
    assert_eq!(drain(&queue), ["c1", "r3", "r1", "r2"]);
}

#[tokio::test(start_paused = true)]
async fn the_backoff_is_the_one_that_is_set() {
    let queue = queue();
    queue.set_backoff(BackoffPlan {
        first: Duration::from_secs(2),
        longest: Duration::from_secs(30),
        factor: 3.0,
    });
    for longest in [2, 6, 18, 30, 30] {
        queue.retry("a");
        let start = Instant::now();
        queue.take().await.unwrap().done();
        let waited = start.elapsed().as_secs_f64();
        let longest = f64::from(longest);
        assert!(
            waited <= longest + 0.01 && waited >= longest * 0.79,
            "{waited} of {longest}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn resync_has_its_turn_among_ever_changing_keys() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    queue.add(u32::MAX, Lane::Resync);
    let mut turns = 0;
    loop {
        queue.add(turns, Lane::Changed);
        queue.add(turns + 1, Lane::Changed);
        turns += 1;
        if ready(&queue).unwrap().key == u32::MAX {
            break;
        }
    }
    assert_eq!(turns, RESYNC_SHARE + 1);
}

#[tokio::test(start_paused = true)]
async fn a_changed_key_waits_for_one_pass_at_most_behind_ten_thousand_in_resync() {
    let queue = WorkQueue::new(Entropy::seeded(7));
    for key in 0..10_000 {
        queue.add(key, Lane::Resync);
    }
    for key in 20_000..20_100 {
        queue.add(key, Lane::Changed);
        let first = ready(&queue).unwrap().key;
        let second = if first == key {
            key
        } else {
            ready(&queue).unwrap().key
        };
        assert_eq!(second, key);
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_added_while_it_runs_goes_back_when_its_worker_is_done() {
    let queue = queue();
    queue.add("a", Lane::Changed);
    let taken = ready(&queue).unwrap();
    queue.add("a", Lane::Changed);
    assert!(ready(&queue).is_none());
    assert_eq!((queue.busy(), queue.depth()), (1, 0));
    advance(Duration::from_secs(3)).await;
    taken.done();
    let again = ready(&queue).unwrap();
    assert_eq!((again.key, again.waited), ("a", Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn of_two_delays_the_earlier_stays_and_a_pass_drops_it() {
    let queue = queue();
    queue.add_after("a", Duration::from_secs(9));
    queue.add_after("a", Duration::from_secs(4));
    queue.add_after("a", Duration::from_secs(6));
    let start = Instant::now();
    let taken = queue.take().await.unwrap();
    assert_eq!(
        (taken.cause, start.elapsed()),
        (Cause::Timer, Duration::from_secs(4))
    );
    drop(taken);
    queue.add_after("a", Duration::from_secs(5));
    queue.add("a", Lane::Changed);
    ready(&queue).unwrap().done();
    assert!(
        timeout(Duration::from_secs(50), queue.take())
            .await
            .is_err()
    );
}

#[tokio::test(start_paused = true)]
async fn an_earlier_delay_wakes_workers_that_sleep_until_a_later_one() {
    let queue = queue();
    queue.add_after("late", Duration::from_secs(100));
    let sleeper = tokio::spawn({
        let queue = queue.clone();
        async move { queue.take().await.unwrap().key }
    });
    sleep(Duration::from_secs(1)).await;
    queue.add_after("early", Duration::from_secs(1));
    assert_eq!(
        timeout(Duration::from_secs(2), sleeper)
            .await
            .unwrap()
            .unwrap(),
        "early"
    );
}

#[tokio::test(start_paused = true)]
async fn backoff_doubles_to_its_limit_and_no_key_is_dropped() {
    let queue = queue();
    queue.add("a", Lane::Changed);
    let mut waits = Vec::new();
    for _ in 0..100 {
        let start = Instant::now();
        let taken = queue.take().await.unwrap();
        waits.push(start.elapsed());
        queue.retry(taken.key);
    }
    assert_eq!(queue.failures(&"a"), 100);
    assert!(waits[1] <= Duration::from_millis(7), "{:?}", waits[1]);
    assert!(
        waits[10] >= Duration::from_secs_f64(0.005 * 512.0 * 0.79),
        "{:?}",
        waits[10]
    );
    assert!(
        waits
            .iter()
            .all(|wait| *wait <= BackoffPlan::default().longest + Duration::from_millis(1))
    );
    assert!(waits[99] >= BackoffPlan::default().longest.mul_f64(0.8));
    queue.take().await.unwrap().done();
    queue.forget(&"a");
    assert_eq!(queue.failures(&"a"), 0);
    queue.retry("a");
    assert!(
        timeout(Duration::from_millis(7), queue.take())
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_does_not_wait_for_the_backoff() {
    let queue = queue();
    for _ in 0..20 {
        queue.retry("a");
    }
    queue.add("a", Lane::Changed);
    assert_eq!(ready(&queue).unwrap().cause, Cause::Changed);
}

#[tokio::test(start_paused = true)]
async fn a_hot_loop_is_slowed_to_a_pass_a_second_and_its_neighbours_are_not() {
    let queue = queue();
    let mut passes = 0;
    let start = Instant::now();
    queue.add("hot", Lane::Changed);
    while start.elapsed() < Duration::from_secs(30) {
        let taken = queue.take().await.unwrap();
        passes += 1;
        queue.add(taken.key, Lane::Changed);
    }
    assert!((88..=92).contains(&passes), "{passes}");
    assert!(queue.is_slowed(&"hot") && !queue.is_slowed(&"calm"));
    assert!(queue.slowed() >= 28);
    queue.add("calm", Lane::Changed);
    assert_eq!(ready(&queue).unwrap().key, "calm");
}

#[tokio::test(start_paused = true)]
async fn the_oldest_key_is_known() {
    let queue = queue();
    assert_eq!(queue.oldest(), None);
    queue.add("r", Lane::Resync);
    advance(Duration::from_secs(2)).await;
    queue.add("c", Lane::Changed);
    advance(Duration::from_secs(1)).await;
    assert_eq!(queue.oldest(), Some(Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_fails_a_hundred_times_converges_when_it_heals() {
    let queue = queue();
    let state = Arc::new(AtomicUsize::new(0));
    let seen = Arc::new(AtomicUsize::new(usize::MAX));
    queue.add("a", Lane::Changed);
    for failures in 1..=100 {
        let taken = queue.take().await.unwrap();
        assert_eq!(queue.failures(&"a"), failures - 1);
        queue.retry("a");
        taken.done();
    }
    // Several changes before a pass are one pass, which reads the last state.
    for change in 1..=5 {
        state.store(change, Ordering::SeqCst);
        queue.add("a", Lane::Changed);
    }
    let taken = queue.take().await.unwrap();
    seen.store(state.load(Ordering::SeqCst), Ordering::SeqCst);
    queue.forget(&"a");
    taken.done();
    assert_eq!(seen.load(Ordering::SeqCst), 5);
    assert_eq!((queue.failures(&"a"), queue.depth()), (0, 0));
    assert!(
        timeout(Duration::from_hours(9), queue.take())
            .await
            .is_err()
    );
}

/// Invariants with real threads: every add is followed by a pass that starts after it, no two passes over one key run at a
/// time, and no state is left.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn under_real_threads_no_wake_up_is_lost_and_no_key_is_run_twice_at_once() {
    const KEYS: u64 = 40;
    let queue = WorkQueue::new(Entropy::seeded(3));
    let wanted: Arc<Vec<AtomicU64>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
    let seen: Arc<Mutex<HashMap<u64, u64>>> = Arc::default();
    let running: Arc<Vec<AtomicUsize>> = Arc::new((0..KEYS).map(|_| AtomicUsize::new(0)).collect());
    let workers = QueueWorkers::start("pond", queue.clone(), 8, |_| {}, {
        let (wanted, seen, running) = (wanted.clone(), seen.clone(), running.clone());
        move |taken: TakenKey<u64>| {
            let (wanted, seen, running) = (wanted.clone(), seen.clone(), running.clone());
            async move {
                let taken = taken;
                let at = usize::try_from(taken.key).unwrap();
                assert_eq!(running[at].fetch_add(1, Ordering::SeqCst), 0);
                let version = wanted[at].load(Ordering::SeqCst);
                tokio::task::yield_now().await;
                seen.lock().insert(taken.key, version);
                assert_eq!(running[at].fetch_sub(1, Ordering::SeqCst), 1);
            }
            .boxed()
        }
    });
    let feeders: Vec<_> = (0..4)
        .map(|feeder| {
            let (queue, wanted) = (queue.clone(), wanted.clone());
            tokio::spawn(async move {
                let entropy = Entropy::seeded(feeder);
                for _ in 0..300 {
                    let key = entropy.bits() % KEYS;
                    wanted[usize::try_from(key).unwrap()].fetch_add(1, Ordering::SeqCst);
                    let lane = if entropy.bits().is_multiple_of(3) {
                        Lane::Resync
                    } else {
                        Lane::Changed
                    };
                    queue.add(key, lane);
                    tokio::task::yield_now().await;
                }
            })
        })
        .collect();
    for feeder in feeders {
        feeder.await.unwrap();
    }
    let settled = async {
        while queue.depth() + queue.delayed() + queue.busy() > 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(30), settled).await.unwrap();
    assert_eq!(workers.count(), 8);
    let seen = seen.lock();
    for key in 0..KEYS {
        let last = wanted[usize::try_from(key).unwrap()].load(Ordering::SeqCst);
        assert_eq!(seen.get(&key).copied().unwrap_or_default(), last, "{key}");
    }
}
