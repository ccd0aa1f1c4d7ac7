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
    state: Mutex<PoolState>,
    tasks: TaskTracker,
    /// Called with the number of workers that take keys, whenever it changes.
    counted: Box<dyn Fn(usize) + Send + Sync>,
}

/// The current workers.
struct PoolState {
    workers: WorkerCount,
    last: u64,
    /// One for each worker that has started and still takes keys.
    tokens: Vec<(u64, CancellationToken)>,
    /// How many of them run a pass.
    busy: usize,
}

impl PoolState {
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
            state: Mutex::new(PoolState {
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
        let pool = &self.0;
        let mut state = pool.state.lock();
        state.workers = workers.into();
        let most = state.workers.most.max(state.workers.least);
        while state.tokens.len() > most {
            if let Some((_, token)) = state.tokens.pop() {
                token.cancel();
            }
        }
        pool.add_if_needed(&mut state);
        (pool.counted)(state.count());
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
        self.0.state.lock().count()
    }
}

impl<K: QueueKey> Drop for QueueWorkers<K> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.workers = WorkerCount::from(0);
        for (_, token) in state.tokens.drain(..) {
            token.cancel();
        }
    }
}

impl<K: QueueKey + Send + Sync + 'static> WorkerPool<K> {
    fn start_worker(self: &Arc<Self>, state: &mut PoolState) {
        state.last += 1;
        let (id, token) = (state.last, CancellationToken::new());
        state.tokens.push((id, token.clone()));
        let ends = Ends::freely_or_with(&token);
        let own = (self.clone(), id, token);
        let named = tasks::named(Task::Worker, &*self.name);
        named.keep_on(&self.tasks, ends, own, |(pool, id, token)| {
            Box::pin(work(pool, *id, token))
        });
    }

    /// Adds a worker if all are busy and the minimum allows it, or if keys wait and the maximum does.
    fn add_if_needed(self: &Arc<Self>, state: &mut PoolState) {
        let started = state.tokens.len();
        let is_needed = started <= state.busy && started < state.workers.least;
        if is_needed || (started < state.workers.most && self.queue.depth() > 0) {
            let before = state.count();
            self.start_worker(state);
            if state.count() != before {
                (self.counted)(state.count());
            }
        }
    }

    /// Counts a worker as busy until the result is dropped, and adds another for the keys that follow.
    fn busy(self: &Arc<Self>) -> Busy<'_, K> {
        let mut state = self.state.lock();
        state.busy += 1;
        self.add_if_needed(&mut state);
        Busy(self)
    }

    /// True if the worker, which found no work, is surplus; it no longer counts then.
    fn is_surplus(&self, id: u64) -> bool {
        let mut state = self.state.lock();
        let is_surplus = state.tokens.len() > state.workers.least;
        if is_surplus {
            state.tokens.retain(|(other, _)| *other != id);
            (self.counted)(state.count());
        }
        is_surplus
    }

    /// True if there are more workers than the minimum.
    fn has_surplus(&self) -> bool {
        let state = self.state.lock();
        state.tokens.len() > state.workers.least
    }
}

/// A worker that runs a pass.
struct Busy<'a, K: QueueKey>(&'a WorkerPool<K>);

impl<K: QueueKey> Drop for Busy<'_, K> {
    fn drop(&mut self) {
        self.0.state.lock().busy -= 1;
    }
}

async fn work<K: QueueKey + Send + Sync + 'static>(
    pool: &Arc<WorkerPool<K>>,
    id: u64,
    token: &CancellationToken,
) {
    loop {
        // Only surplus workers need a timer.
        let idle = async {
            if !pool.has_surplus() {
                pending::<()>().await;
            }
            // Rare: boxed, so that it takes memory only while it waits.
            Box::pin(sleep(SURPLUS_IDLE)).await;
        };
        let next = tokio::select! {
            biased;
            next = token.run_until_cancelled(pool.queue.take()) => next,
            () = idle => {
                if pool.is_surplus(id) {
                    return;
                }
                continue;
            }
        };
        let Some(Some(key)) = next else { return };
        let _busy = pool.busy();
        let run = async { (pool.pass)(key).await };
        if AssertUnwindSafe(run).catch_unwind().await.is_err() {
            tracing::error!("a worker continues after a panic outside a reconcile pass");
        }
    }
}
