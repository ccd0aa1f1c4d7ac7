//! A set of workers that can be resized while it runs, and that grows while keys wait.

use std::{fmt, future::pending, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use orkestra_ground::tasks::{self, Ends, Task};
use parking_lot::Mutex;
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{QueueKey, TakenKey, WorkQueue};

/// How long a surplus worker waits for a key before it ends.
pub const SURPLUS_IDLE: Duration = Duration::from_secs(10);

/// One pass: takes the key's guard and drops it at the end.
type Pass<K> = Arc<dyn Fn(TakenKey<K>) -> BoxFuture<'static, ()> + Send + Sync>;

/// The number of workers. A plain number means exactly that many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerCount {
    /// The minimum: as many are never surplus.
    pub least: usize,
    /// The maximum, while keys wait.
    pub most: usize,
}

impl From<usize> for WorkerCount {
    fn from(count: usize) -> Self {
        Self {
            least: count,
            most: count,
        }
    }
}

/// Tasks that take keys from one queue, each running one pass at a time.
///
/// A worker that takes a key while others wait starts another worker, up to the maximum; a worker above the minimum ends when
/// it finds no work for [`SURPLUS_IDLE`]. Workers up to the minimum start once they are needed: when a key is taken and no other
/// worker waits for the next. So an operator without work takes the memory of one worker.
///
/// A panic ends only its pass: the key is retried with backoff, and the worker continues. Dropping the set lets running
/// passes end without waiting for them.
pub struct QueueWorkers<K: QueueKey>(Arc<WorkerPool<K>>);

/// The shared state of the workers of a set.
struct WorkerPool<K: QueueKey> {
    /// The name of the set, for logs.
    name: Box<str>,
    queue: WorkQueue<K>,
    pass: Pass<K>,
    roll: Mutex<Roll>,
    tasks: TaskTracker,
    /// Called with the number of workers that take keys, whenever it changes.
    counted: Box<dyn Fn(usize) + Send + Sync>,
}

/// The current workers.
struct Roll {
    workers: WorkerCount,
    last: u64,
    /// One for each worker that has started and still takes keys.
    tokens: Vec<(u64, CancellationToken)>,
    /// How many of them run a pass.
    busy: usize,
}

impl Roll {
    /// The workers that take keys, or do once they are needed.
    fn count(&self) -> usize {
        self.tokens.len().max(self.workers.least)
    }
}

impl<K: QueueKey> fmt::Debug for QueueWorkers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueueWorkers")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl<K: QueueKey + Send + Sync + 'static> QueueWorkers<K> {
    /// Starts workers of `name` on the current tokio runtime; `counted` is called with their number whenever it changes.
    pub fn start(
        name: &str,
        queue: WorkQueue<K>,
        count: impl Into<WorkerCount>,
        counted: impl Fn(usize) + Send + Sync + 'static,
        pass: impl Fn(TakenKey<K>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let workers = Self(Arc::new(WorkerPool {
            name: name.into(),
            queue,
            pass: Arc::new(pass),
            roll: Mutex::new(Roll {
                workers: WorkerCount::from(0),
                last: 0,
                tokens: Vec::new(),
                busy: 0,
            }),
            tasks: TaskTracker::new(),
            counted: Box::new(counted),
        }));
        workers.resize(count);
        workers
    }

    /// Changes the number of workers. Surplus ones finish their pass and take no other key.
    pub fn resize(&self, workers: impl Into<WorkerCount>) {
        let team = &self.0;
        let mut roll = team.roll.lock();
        roll.workers = workers.into();
        let most = roll.workers.most.max(roll.workers.least);
        while roll.tokens.len() > most {
            if let Some((_, token)) = roll.tokens.pop() {
                token.cancel();
            }
        }
        team.staff(&mut roll);
        (team.counted)(roll.count());
    }

    /// Lets running passes end, and returns after the last.
    pub async fn stop(&self) {
        self.resize(0);
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl<K: QueueKey> QueueWorkers<K> {
    /// Returns the number of workers that take keys, without surplus ones that finish their pass.
    pub fn count(&self) -> usize {
        self.0.roll.lock().count()
    }
}

impl<K: QueueKey> Drop for QueueWorkers<K> {
    fn drop(&mut self) {
        let mut roll = self.0.roll.lock();
        roll.workers = WorkerCount::from(0);
        for (_, token) in roll.tokens.drain(..) {
            token.cancel();
        }
    }
}

impl<K: QueueKey + Send + Sync + 'static> WorkerPool<K> {
    fn hire(self: &Arc<Self>, roll: &mut Roll) {
        roll.last += 1;
        let (id, token) = (roll.last, CancellationToken::new());
        roll.tokens.push((id, token.clone()));
        let ends = Ends::freely_or_with(&token);
        let state = (self.clone(), id, token);
        let named = tasks::named(Task::Worker, &*self.name);
        named.keep_on(&self.tasks, ends, state, |(team, id, token)| {
            Box::pin(work(team, *id, token))
        });
    }

    /// Adds a worker if all are busy and the minimum allows it, or if keys wait and the maximum does.
    fn staff(self: &Arc<Self>, roll: &mut Roll) {
        let started = roll.tokens.len();
        let is_needed = started <= roll.busy && started < roll.workers.least;
        if is_needed || (started < roll.workers.most && self.queue.depth() > 0) {
            let before = roll.count();
            self.hire(roll);
            if roll.count() != before {
                (self.counted)(roll.count());
            }
        }
    }

    /// Counts a worker as busy until the result is dropped, and adds another for the keys that follow.
    fn busy(self: &Arc<Self>) -> Busy<'_, K> {
        let mut roll = self.roll.lock();
        roll.busy += 1;
        self.staff(&mut roll);
        Busy(self)
    }

    /// True if the worker, which found no work, is surplus; it no longer counts then.
    fn is_surplus(&self, id: u64) -> bool {
        let mut roll = self.roll.lock();
        let is_surplus = roll.tokens.len() > roll.workers.least;
        if is_surplus {
            roll.tokens.retain(|(other, _)| *other != id);
            (self.counted)(roll.count());
        }
        is_surplus
    }

    /// True if there are more workers than the minimum.
    fn has_surplus(&self) -> bool {
        let roll = self.roll.lock();
        roll.tokens.len() > roll.workers.least
    }
}

/// A worker that runs a pass.
struct Busy<'a, K: QueueKey>(&'a WorkerPool<K>);

impl<K: QueueKey> Drop for Busy<'_, K> {
    fn drop(&mut self) {
        self.0.roll.lock().busy -= 1;
    }
}

async fn work<K: QueueKey + Send + Sync + 'static>(
    team: &Arc<WorkerPool<K>>,
    id: u64,
    token: &CancellationToken,
) {
    loop {
        // Only surplus workers need a timer.
        let idle = async {
            if !team.has_surplus() {
                pending::<()>().await;
            }
            // Rare: boxed, so that it takes memory only while it waits.
            Box::pin(sleep(SURPLUS_IDLE)).await;
        };
        let next = tokio::select! {
            biased;
            next = token.run_until_cancelled(team.queue.take()) => next,
            () = idle => {
                if team.is_surplus(id) {
                    return;
                }
                continue;
            }
        };
        let Some(Some(key)) = next else { return };
        let _busy = team.busy();
        let run = async { (team.pass)(key).await };
        if AssertUnwindSafe(run).catch_unwind().await.is_err() {
            tracing::error!("a worker continues after a panic outside a reconcile pass");
        }
    }
}
