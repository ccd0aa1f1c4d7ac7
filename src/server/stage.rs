//! How far the process has come: what the probes answer.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// How far the process has come. Clones are the same one; it only moves forward.
#[derive(Clone, Debug, Default)]
pub struct Stage(Arc<AtomicU8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Now {
    Starting,
    Ready,
    Stopping,
}

impl Stage {
    /// The Katalogs are known: from now on this process does its work.
    pub fn set_ready(&self) {
        self.0.fetch_max(1, Ordering::Relaxed);
    }

    /// The process is about to end: it takes no new work.
    pub fn set_stopping(&self) {
        self.0.fetch_max(2, Ordering::Relaxed);
    }

    pub(super) fn now(&self) -> Now {
        match self.0.load(Ordering::Relaxed) {
            0 => Now::Starting,
            1 => Now::Ready,
            _ => Now::Stopping,
        }
    }
}
