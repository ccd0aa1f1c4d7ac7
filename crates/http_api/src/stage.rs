//! The stage of the process, for the probes.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
};

/// The stage of the process. Clones share it; it only moves forward.
#[derive(Clone, Debug, Default)]
pub struct Stage(Arc<AtomicU8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CurrentStage {
    Starting,
    Ready,
    Stopping,
}

impl Stage {
    /// The Katalogs are known: from now on this process reconciles.
    pub fn set_ready(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// The process is about to end: it starts no new work.
    pub fn set_stopping(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> CurrentStage {
        match self.0.load(Ordering::Relaxed) {
            0 => CurrentStage::Starting,
            1 => CurrentStage::Ready,
            _ => CurrentStage::Stopping,
        }
    }
}

/// Reports whether the process is alive, or why it has to be restarted. The default reports alive as long as it answers.
#[derive(Clone)]
pub struct Liveness(Arc<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Liveness {
    /// Uses the result of `check`, which must be fast and must not block.
    pub fn new(check: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(check))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        (self.0)()
    }
}

impl Default for Liveness {
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

impl fmt::Debug for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Liveness").field(&self.check()).finish()
    }
}
