//! Fairness between groups of keys, such as namespaces: they take turns.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// A key: its group, and its number in the group.
type GroupedKey = (u32, u32);

impl QueueKey for GroupedKey {
    type Group = u32;

    fn group(&self) -> &u32 {
        &self.0
    }
}

fn grouped() -> WorkQueue<GroupedKey> {
    WorkQueue::new(Entropy::seeded(7))
}

/// Takes the next key, and ends its pass immediately.
fn turn(queue: &WorkQueue<GroupedKey>) -> Option<GroupedKey> {
    ready(queue).map(|taken| taken.key)
}

#[tokio::test(start_paused = true)]
async fn a_key_waits_for_one_pass_of_another_namespace_whatever_is_queued_there() {
    let key = |namespace: Option<&str>, name: &str| orkestra_plan::ObjectKey {
        namespace: namespace.map(Into::into),
        name: name.into(),
    };
    for lane in [Lane::Changed, Lane::Resync] {
        let queue = WorkQueue::new(Entropy::seeded(7));
        for n in 0..300 {
            queue.add(key(Some("flood"), &format!("hot-{n}")), lane);
        }
        for calm in [
            key(Some("calm"), "a"),
            key(Some("yard"), "b"),
            key(None, "c"),
        ] {
            queue.add(calm.clone(), lane);
            let next = [(); 2].map(|()| ready(&queue).unwrap().key.clone());
            assert!(next.contains(&calm), "{calm} after {next:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_in_of_a_group_is_its_first_out_and_groups_alternate() {
    let queue = grouped();
    for key in [(2, 9), (2, 1), (2, 5), (1, 4), (3, 3), (1, 2)] {
        queue.add(key, Lane::Changed);
    }
    let taken: Vec<_> = std::iter::from_fn(|| turn(&queue)).collect();
    assert_eq!(taken, [(1, 4), (2, 9), (3, 3), (1, 2), (2, 1), (2, 5)]);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_the_breaker_delays_does_not_end_the_turn_of_its_group() {
    let queue = grouped();
    for _ in 0..BREAKER_BURST {
        queue.add((1, 0), Lane::Changed);
        turn(&queue).unwrap();
    }
    queue.add((2, 0), Lane::Changed);
    turn(&queue).unwrap();
    for key in [(1, 0), (1, 1), (2, 1)] {
        queue.add(key, Lane::Changed);
    }
    assert_eq!(turn(&queue), Some((1, 1)));
    assert_eq!(turn(&queue), Some((2, 1)));
}

#[tokio::test(start_paused = true)]
async fn groups_alternate_among_the_keys_that_a_held_queue_lets_through() {
    let queue = grouped();
    queue.hold(true);
    for key in [(1, 0), (1, 1), (1, 2), (2, 0), (1, 3), (2, 1)] {
        queue.let_through(&key, true);
        queue.add(key, Lane::Changed);
    }
    queue.add((0, 0), Lane::Changed);
    let taken: Vec<_> = std::iter::from_fn(|| turn(&queue)).collect();
    assert_eq!(taken, [(1, 0), (2, 0), (1, 1), (2, 1), (1, 2), (1, 3)]);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_key_is_found_in_any_group() {
    let queue = grouped();
    for key in [(3, 0), (1, 0), (2, 0)] {
        queue.add(key, Lane::Changed);
        advance(Duration::from_secs(1)).await;
    }
    assert_eq!(queue.oldest(), Some(Duration::from_secs(3)));
    queue.remove(&(3, 0));
    assert_eq!(queue.oldest(), Some(Duration::from_secs(2)));
}

/// A model of the queue: the waiting keys, and the turns of other groups since the last turn of each waiting group.
#[derive(Default)]
struct Expected {
    waiting: BTreeMap<(usize, u32), Vec<u32>>,
    passed_by: BTreeSet<(usize, u32, u32)>,
}

impl Expected {
    fn add(&mut self, (group, n): GroupedKey, lane: Lane) {
        let has = |lane: Lane| {
            let keys = self.waiting.get(&(lane as usize, group));
            keys.is_some_and(|keys| keys.contains(&n))
        };
        if has(Lane::Changed) || has(lane) {
            return;
        }
        self.remove((group, n));
        let keys = self.waiting.entry((lane as usize, group)).or_default();
        keys.push(n);
    }

    fn remove(&mut self, (group, n): GroupedKey) {
        for lane in 0..2 {
            let Some(keys) = self.waiting.get_mut(&(lane, group)) else {
                continue;
            };
            keys.retain(|other| *other != n);
            if keys.is_empty() {
                self.waiting.remove(&(lane, group));
                self.passed_by
                    .retain(|(of, who, _)| (*of, *who) != (lane, group));
            }
        }
    }

    /// Checks that the queue was right to return this key.
    fn take(&mut self, (group, n): GroupedKey, cause: Cause) {
        let lane = cause.lane() as usize;
        assert_eq!(self.waiting[&(lane, group)][0], n, "wrong order in a group");
        self.remove((group, n));
        self.passed_by
            .retain(|(of, who, _)| (*of, *who) != (lane, group));
        for (of, other) in self.waiting.keys() {
            let is_first =
                *of != lane || *other == group || self.passed_by.insert((lane, *other, group));
            assert!(is_first, "{group} had two turns while {other} waited");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_key_is_taken_and_no_group_has_two_turns_while_another_waits() {
    for seed in 0..200 {
        let (queue, entropy) = (grouped(), Entropy::seeded(seed));
        let mut expected = Expected::default();
        let draw = |below: u64| u32::try_from(entropy.bits() % below).unwrap();
        for _ in 0..600 {
            // Group 0 has many keys, the other groups have few.
            let group = draw(6);
            let key = (group, draw(if group == 0 { 60 } else { 6 }));
            match draw(8) {
                0..4 => {
                    let lane = [Lane::Changed, Lane::Resync][usize::from(draw(3) == 0)];
                    queue.add(key, lane);
                    expected.add(key, lane);
                }
                4 => {
                    queue.remove(&key);
                    expected.remove(key);
                }
                _ => match ready(&queue) {
                    Some(taken) => expected.take(taken.key, taken.cause),
                    None => assert!(expected.waiting.is_empty(), "{seed}"),
                },
            }
            advance(Duration::from_millis(500)).await;
        }
        while let Some(taken) = ready(&queue) {
            expected.take(taken.key, taken.cause);
        }
        assert!(
            expected.waiting.is_empty(),
            "{seed}: {:?}",
            expected.waiting
        );
    }
}

/// Returns the sorted waiting times of keys that change one after the other, 10 ms apart, while each key of `hot` changes 100 times
/// per second. There are two workers, and each pass takes 5 ms.
async fn waits_beside(hot: &[GroupedKey]) -> Vec<Duration> {
    const TURNS: u32 = 3000;
    let queue = grouped();
    let waits = Arc::new(Mutex::new(Vec::new()));
    let workers: Vec<_> = (0..2)
        .map(|_| {
            let (queue, waits, hot) = (queue.clone(), waits.clone(), hot.to_vec());
            tokio::spawn(async move {
                while let Some(taken) = queue.take().await {
                    if !hot.contains(&taken.key) {
                        waits.lock().push(taken.waited);
                    }
                    sleep(Duration::from_millis(5)).await;
                    taken.done();
                }
            })
        })
        .collect();
    for turn in 0..TURNS {
        for key in hot {
            queue.add(*key, Lane::Changed);
        }
        queue.add((1, 1 + turn % 50), Lane::Changed);
        sleep(Duration::from_millis(10)).await;
    }
    queue.shutdown();
    for worker in workers {
        worker.await.unwrap();
    }
    let mut waits = std::mem::take(&mut *waits.lock());
    assert!(waits.len() + 2 >= TURNS as usize, "{}", waits.len());
    waits.sort();
    waits
}

fn p99(waits: &[Duration]) -> Duration {
    waits[waits.len() * 99 / 100]
}

#[tokio::test(start_paused = true)]
async fn a_key_that_changes_a_hundred_times_a_second_is_not_felt_by_the_others() {
    let (alone, beside) = (waits_beside(&[]).await, waits_beside(&[(1, 0)]).await);
    assert!(
        p99(&beside) <= p99(&alone) + Duration::from_millis(1),
        "{:?} {:?}",
        p99(&alone),
        p99(&beside)
    );
    // The hot key occupies one of the two workers, for 5 ms at most.
    assert!(beside[beside.len() - 1] <= Duration::from_millis(5));
}

#[tokio::test(start_paused = true)]
async fn three_hundred_hot_keys_of_a_namespace_delay_those_of_another_by_a_pass_at_most() {
    let hot: Vec<_> = (0..300).map(|n| (0, n)).collect();
    let beside = waits_beside(&hot).await;
    // Both workers are always busy; the next free worker takes the key.
    let longest = beside[beside.len() - 1];
    assert!(longest <= Duration::from_millis(6), "{longest:?}");
}
