//! A set of workers that can be resized while it runs.

use std::{
    fmt,
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, PoisonError},
};

use futures::{FutureExt, future::BoxFuture};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Queue, Taken};

/// One pass: takes the key's guard and drops it when it is through.
type Pass<K> = Arc<dyn Fn(Taken<K>) -> BoxFuture<'static, ()> + Send + Sync>;

/// Tasks that take keys of one queue, each running one pass at a time.
///
/// A pass that panics ends alone: its key is retried with backoff, its worker goes on. Dropping the set
/// lets running passes end; nobody waits for them.
pub struct Workers<K: Clone + Eq + Hash> {
    queue: Queue<K>,
    pass: Pass<K>,
    /// One for each worker that still takes keys.
    tokens: Mutex<Vec<CancellationToken>>,
    tasks: TaskTracker,
}

impl<K: Clone + Eq + Hash> fmt::Debug for Workers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Workers<K> {
    /// Starts `count` workers on the current tokio runtime.
    pub fn start(
        queue: Queue<K>,
        count: usize,
        pass: impl Fn(Taken<K>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let workers = Self {
            queue,
            pass: Arc::new(pass),
            tokens: Mutex::default(),
            tasks: TaskTracker::new(),
        };
        workers.resize(count);
        workers
    }

    /// Makes it `count` workers. Surplus ones end their pass and take no other.
    pub fn resize(&self, count: usize) {
        let mut tokens = self.tokens();
        while tokens.len() > count {
            if let Some(token) = tokens.pop() {
                token.cancel();
            }
        }
        while tokens.len() < count {
            let token = CancellationToken::new();
            tokens.push(token.clone());
            let (queue, pass) = (self.queue.clone(), Arc::clone(&self.pass));
            self.tasks.spawn(work(queue, pass, token));
        }
    }

    /// Lets running passes end, and returns when the last has.
    pub async fn stop(&self) {
        self.resize(0);
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl<K: Clone + Eq + Hash> Workers<K> {
    /// Workers that take keys; a surplus one that still ends its pass does not count.
    pub fn count(&self) -> usize {
        self.tokens().len()
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, Vec<CancellationToken>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash> Drop for Workers<K> {
    fn drop(&mut self) {
        for token in self.tokens().drain(..) {
            token.cancel();
        }
    }
}

async fn work<K: Clone + Eq + Hash + Send + Sync + 'static>(
    queue: Queue<K>,
    pass: Pass<K>,
    token: CancellationToken,
) {
    while let Some(Some(taken)) = token.run_until_cancelled(queue.take()).await {
        let run = async { pass(taken).await };
        if AssertUnwindSafe(run).catch_unwind().await.is_err() {
            tracing::error!("a worker went on after a panic outside of a pass");
        }
    }
}
