//! Runs the WebAssembly modules of hooks, in slices, so that none of them holds a thread.
//!
//! ```text
//!  call ── place: 8 runs of the process, in fair shares ──► slice: a turn, on a thread for blocking work ──► ended: the answer
//!                                                             ▲                                     │ more
//!                                                             └──── the next turn, after others ◄───┘
//! ```
//!
//! As many slices execute at a time as the machine has cores, less one. Runs take turns, so an endless loop delays other runs by a slice
//! each and custom resources without hooks by nothing; it ends with its fuel or its deadline. A run whose pass has ended is
//! dropped after its slice.

use std::{sync::Arc, time::Duration};

use orkestra_engine::reconcile::calls::{CallAnswer, CallRequest};
use orkestra_ground::tasks::{self, Task};
use orkestra_wasm::{Module, Run, RunStep};
use tokio::{sync::Semaphore, time::Instant};

use super::slots::{CallSlots, Caller, SlotLimits};
use crate::{context::cores, metrics::CallResult};

/// The most runs that have memory at a time, each at most 64 MiB. Of these, a namespace can hold 5 and an operator 6.
const RUNS: SlotLimits = SlotLimits {
    process: 8,
    host: 8,
};
/// The fuel of a slice: some milliseconds.
const SLICE: u64 = 2_000_000;
/// How long a run waits for its place.
const TURN: Duration = Duration::from_secs(30);

/// The runs of one process.
pub(crate) struct ModuleRuns {
    places: Arc<CallSlots>,
    /// First come, first served: every run gets its turn.
    turns: Semaphore,
}

impl Default for ModuleRuns {
    fn default() -> Self {
        Self {
            places: Arc::new(CallSlots::of(RUNS)),
            turns: Semaphore::new(cores().saturating_sub(1).max(1)),
        }
    }
}

impl ModuleRuns {
    /// Runs the module of a request.
    pub(crate) async fn run(
        &self,
        module: Option<&Arc<Module>>,
        request: &CallRequest,
        caller: &Caller,
    ) -> (CallAnswer, CallResult) {
        let Some(module) = module else {
            return (CallAnswer::without_module(), CallResult::Refused);
        };
        let place = self.places.take("", caller);
        let Ok(_place) = tokio::time::timeout(TURN, place).await else {
            let why = "its module was not run: too many modules run";
            return (CallAnswer::failed(why, false), CallResult::Busy);
        };
        let until = Instant::now() + request.timeout;
        let mut run = module.start(Arc::from(&*request.body), request.limits());
        loop {
            let late = || {
                let within = request.timeout.as_secs_f32();
                let why = format!("its module did not end within {within} s");
                (CallAnswer::failed(why, false), CallResult::Timeout)
            };
            let turn = tokio::time::timeout_at(until, self.turns.acquire()).await;
            let Ok(Ok(turn)) = turn else { return late() };
            let step = slice(run, caller).await;
            drop(turn);
            match step {
                Some(RunStep::Ended(ended)) => {
                    let result = match &ended {
                        Ok(_) => CallResult::Success,
                        Err(_) => CallResult::Broken,
                    };
                    return (CallAnswer::of_run(ended), result);
                }
                Some(RunStep::More(_)) if Instant::now() >= until => return late(),
                Some(RunStep::More(more)) => run = more,
                None => {
                    let why = "the run of its module ended in a panic";
                    return (CallAnswer::failed(why, false), CallResult::Broken);
                }
            }
        }
    }
}

/// Executes a slice; `None` if it ended in a panic.
async fn slice(run: Run, caller: &Caller) -> Option<RunStep> {
    let named = tasks::named(Task::ExternalCall, &caller.operator);
    named.start_blocking(move || run.step(SLICE)).await.ok()
}
