//! A set of workers that can be resized while it runs, and grows by itself while keys wait.

use std::{
    fmt,
    future::pending,
    hash::Hash,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use orkestra_ground::tasks::{self, Ends, Task};
use tokio::time::sleep;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{Queue, Taken};

/// How long a worker beyond the least waits for a key before it goes.
pub const SURPLUS_IDLE: Duration = Duration::from_secs(10);

/// One pass: takes the key's guard and drops it when it is through.
type Pass<K> = Arc<dyn Fn(Taken<K>) -> BoxFuture<'static, ()> + Send + Sync>;

/// How many workers there are. A plain number is exactly so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crew {
    /// However little there is to do.
    pub least: usize,
    /// While keys wait.
    pub most: usize,
}

impl From<usize> for Crew {
    fn from(count: usize) -> Self {
        Self {
            least: count,
            most: count,
        }
    }
}

/// Tasks that take keys of one queue, each running one pass at a time.
///
/// A worker that takes a key while others wait starts another worker, up to the most; one that is more than the least goes
/// when it finds nothing to do for [`SURPLUS_IDLE`].
///
/// A pass that panics ends alone: its key is retried with backoff, its worker goes on. Dropping the set
/// lets running passes end; nobody waits for them.
pub struct Workers<K: Clone + Eq + Hash>(Arc<Team<K>>);

/// What the workers of a set share.
struct Team<K: Clone + Eq + Hash> {
    /// Whose workers they are, for logs.
    name: Box<str>,
    queue: Queue<K>,
    pass: Pass<K>,
    roll: Mutex<Roll>,
    tasks: TaskTracker,
    /// Told how many take keys, whenever that changes.
    counted: Box<dyn Fn(usize) + Send + Sync>,
}

/// Who works.
struct Roll {
    crew: Crew,
    last: u64,
    /// One for each worker that still takes keys.
    tokens: Vec<(u64, CancellationToken)>,
}

impl<K: Clone + Eq + Hash> fmt::Debug for Workers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("count", &self.count())
            .finish_non_exhaustive()
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Workers<K> {
    /// Starts workers of `name` on the current tokio runtime; `counted` is told how many there are, whenever that changes.
    pub fn start(
        name: &str,
        queue: Queue<K>,
        crew: impl Into<Crew>,
        counted: impl Fn(usize) + Send + Sync + 'static,
        pass: impl Fn(Taken<K>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        let workers = Self(Arc::new(Team {
            name: name.into(),
            queue,
            pass: Arc::new(pass),
            roll: Mutex::new(Roll {
                crew: Crew::from(0),
                last: 0,
                tokens: Vec::new(),
            }),
            tasks: TaskTracker::new(),
            counted: Box::new(counted),
        }));
        workers.resize(crew);
        workers
    }

    /// Makes it so many workers. Surplus ones end their pass and take no other.
    pub fn resize(&self, crew: impl Into<Crew>) {
        let team = &self.0;
        let mut roll = team.roll();
        roll.crew = crew.into();
        let most = roll.crew.most.max(roll.crew.least);
        while roll.tokens.len() > most {
            if let Some((_, token)) = roll.tokens.pop() {
                token.cancel();
            }
        }
        while roll.tokens.len() < roll.crew.least {
            team.hire(&mut roll);
        }
        (team.counted)(roll.tokens.len());
    }

    /// Lets running passes end, and returns when the last has.
    pub async fn stop(&self) {
        self.resize(0);
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

impl<K: Clone + Eq + Hash> Workers<K> {
    /// Workers that take keys; a surplus one that still ends its pass does not count.
    pub fn count(&self) -> usize {
        self.0.roll().tokens.len()
    }
}

impl<K: Clone + Eq + Hash> Drop for Workers<K> {
    fn drop(&mut self) {
        let mut roll = self.0.roll();
        roll.crew = Crew::from(0);
        for (_, token) in roll.tokens.drain(..) {
            token.cancel();
        }
    }
}

impl<K: Clone + Eq + Hash> Team<K> {
    fn roll(&self) -> MutexGuard<'_, Roll> {
        self.roll.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Clone + Eq + Hash + Send + Sync + 'static> Team<K> {
    fn hire(self: &Arc<Self>, roll: &mut Roll) {
        roll.last += 1;
        let (id, token) = (roll.last, CancellationToken::new());
        roll.tokens.push((id, token.clone()));
        let ends = Ends::freely_or_with(&token);
        let state = (self.clone(), id, token);
        tasks::named(Task::Worker, &*self.name).keep_on(&self.tasks, ends, state, |state| {
            let (team, id, token) = state.clone();
            Box::pin(work(team, id, token))
        });
    }

    /// One worker more, if keys wait and there may be one.
    fn grow(self: &Arc<Self>) {
        if self.queue.depth() == 0 {
            return;
        }
        let mut roll = self.roll();
        if roll.tokens.len() < roll.crew.most {
            self.hire(&mut roll);
            (self.counted)(roll.tokens.len());
        }
    }

    /// Whether the worker, which found nothing to do, is one too many; it no longer counts then.
    fn is_surplus(&self, id: u64) -> bool {
        let mut roll = self.roll();
        let is_surplus = roll.tokens.len() > roll.crew.least;
        if is_surplus {
            roll.tokens.retain(|(other, _)| *other != id);
            (self.counted)(roll.tokens.len());
        }
        is_surplus
    }

    /// Whether there are more workers than the least.
    fn has_surplus(&self) -> bool {
        let roll = self.roll();
        roll.tokens.len() > roll.crew.least
    }
}

async fn work<K: Clone + Eq + Hash + Send + Sync + 'static>(
    team: Arc<Team<K>>,
    id: u64,
    token: CancellationToken,
) {
    loop {
        // A timer for those alone that may have to go.
        let idle = async {
            if !team.has_surplus() {
                pending::<()>().await;
            }
            sleep(SURPLUS_IDLE).await;
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
        team.grow();
        let run = async { (team.pass)(key).await };
        if AssertUnwindSafe(run).catch_unwind().await.is_err() {
            tracing::error!("a worker went on after a panic outside of a pass");
        }
    }
}
