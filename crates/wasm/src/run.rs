//! One run of a module: a request in, an answer out, in steps.

use std::sync::Arc;

use wasmi::{
    ResumableCall, ResumableCallHostTrap, ResumableCallOutOfFuel, Store, errors::ErrorKind,
    errors::InstantiationError,
};

use super::{Module, RunError, wasi::Host, wasi::Stop};

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most fuel; an instruction needs about one unit.
    pub fuel: u64,
    /// The most bytes of memory.
    pub memory: usize,
    /// The most bytes of its answer.
    pub answer: usize,
}

impl Default for Limits {
    /// Two billion instructions, 64 MiB of memory, and an answer of 1 MiB.
    fn default() -> Self {
        Self {
            fuel: 2_000_000_000,
            memory: 64 << 20,
            answer: 1 << 20,
        }
    }
}

/// A run that has not ended. It can be dropped at any time.
pub struct Run {
    module: Arc<Module>,
    store: Box<Store<Host>>,
    state: State,
    /// The fuel that is left.
    left: u64,
    limits: Limits,
}

/// The state of a run.
enum State {
    /// Nothing was executed yet.
    New,
    /// It was interrupted: it continues there.
    Paused(ResumableCallOutOfFuel),
}

/// What a step led to.
pub enum RunStep {
    /// Its fuel is used up, and the run continues with the next step.
    More(Run),
    /// It has ended.
    Ended(Result<String, RunError>),
}

impl Module {
    /// Prepares a run with this request. Nothing is executed yet.
    pub fn start(self: &Arc<Self>, request: Arc<str>, limits: Limits) -> Run {
        let mut store = Store::new(&self.engine, Host::new(request, &limits));
        store.limiter(Host::limiter);
        Run {
            module: Arc::clone(self),
            store: Box::new(store),
            state: State::New,
            left: limits.fuel,
            limits,
        }
    }

    /// Runs to the end on this thread.
    ///
    /// # Errors
    /// The run has no answer.
    pub fn run(self: &Arc<Self>, request: Arc<str>, limits: Limits) -> Result<String, RunError> {
        let mut run = self.start(request, limits);
        loop {
            match run.step(u64::MAX) {
                RunStep::More(more) => run = more,
                RunStep::Ended(ended) => return ended,
            }
        }
    }
}

impl Run {
    /// Executes as much as `fuel` permits.
    pub fn step(mut self, fuel: u64) -> RunStep {
        let needed = match &self.state {
            State::New => 1,
            State::Paused(call) => call.required_fuel(),
        };
        let given = fuel.max(needed).min(self.left);
        if given < needed {
            return RunStep::Ended(Err(self.out_of_fuel()));
        }
        // The engine counts fuel.
        let _ = self.store.set_fuel(given);
        let called = match std::mem::replace(&mut self.state, State::New) {
            State::New => self.call(),
            State::Paused(call) => call.resume(&mut *self.store, &mut []),
        };
        let unused = self.store.get_fuel().unwrap_or_default();
        self.left -= given.saturating_sub(unused).min(self.left);
        match called {
            Ok(ResumableCall::Finished) => RunStep::Ended(self.answer(None)),
            Ok(ResumableCall::OutOfFuel(call)) => {
                self.state = State::Paused(call);
                RunStep::More(self)
            }
            Ok(ResumableCall::HostTrap(trap)) => RunStep::Ended(self.stopped(trap)),
            Err(error) => RunStep::Ended(self.answer(Some(&error))),
        }
    }

    /// Returns the fuel that was used so far.
    pub fn used(&self) -> u64 {
        self.limits.fuel - self.left
    }

    /// Instantiates the module and calls `_start`.
    fn call(&mut self) -> Result<ResumableCall, wasmi::Error> {
        let instance = self
            .module
            .linker
            .instantiate_and_start(&mut *self.store, &self.module.code)?;
        let start = instance
            .get_func(&*self.store, "_start")
            .ok_or_else(|| wasmi::Error::new("there is no `_start`"))?;
        start.call_resumable(&mut *self.store, &[], &mut [])
    }

    /// Returns the end of a run that a function of WASI ended.
    fn stopped(&mut self, trap: ResumableCallHostTrap) -> Result<String, RunError> {
        let error = trap.into_host_error();
        match error.downcast_ref::<Stop>() {
            Some(Stop::Exit(0)) => self.answer(None),
            Some(Stop::Exit(status)) => Err(RunError::Exit {
                status: *status,
                stderr: self.store.data().said(),
            }),
            Some(Stop::TooLarge) => Err(RunError::TooLarge {
                most: self.limits.answer,
            }),
            None => self.answer(Some(&error)),
        }
    }

    fn answer(&mut self, error: Option<&wasmi::Error>) -> Result<String, RunError> {
        let Some(error) = error else {
            let answer = self.store.data_mut().take_answer();
            return String::from_utf8(answer).map_err(|_| RunError::NotText);
        };
        Err(match error.kind() {
            ErrorKind::TrapCode(wasmi::TrapCode::OutOfFuel) => self.out_of_fuel(),
            ErrorKind::Instantiation(InstantiationError::FailedToInstantiateMemory(_))
            | ErrorKind::Memory(_) => RunError::Memory {
                most: self.limits.memory,
            },
            _ => RunError::Trap {
                what: error.to_string(),
                stderr: self.store.data().said(),
            },
        })
    }

    fn out_of_fuel(&self) -> RunError {
        RunError::OutOfFuel {
            fuel: self.limits.fuel,
            stderr: self.store.data().said(),
        }
    }
}
