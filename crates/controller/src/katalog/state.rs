//! The states of a Katalog's task.

use std::sync::Arc;

use super::judge::RunnableRevision;

/// What is left of a Katalog's object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existence {
    /// It exists, or the custom resources to delete with it do.
    Present,
    /// It is being deleted, and the custom resources to delete with it are gone.
    Cleared,
    /// It is gone.
    Gone,
}

/// Whether this process leads; a process that does not writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// Another process leads.
    Follower,
    /// This process leads; what runs may not be stored, and what its predecessor left is not handled yet.
    TakingOver,
    /// This process leads, and has stored what runs.
    Confirmed,
}

impl Lead {
    pub(crate) fn of(leads: bool) -> Self {
        if leads {
            Self::TakingOver
        } else {
            Self::Follower
        }
    }

    pub(crate) fn is_leader(self) -> bool {
        self != Self::Follower
    }
}

/// The revision that was in force when this process took over the leadership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// It is not looked up yet.
    Unknown,
    /// Its operators are starting: the newest revision waits for them.
    Starting,
    /// Nothing waits for it.
    Handled,
}

/// The revision that the operators run, or will run as soon as they can.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) revision: Arc<str>,
    pub(crate) runs: RunnableRevision,
}

impl std::ops::Deref for Running {
    type Target = RunnableRevision;

    fn deref(&self) -> &RunnableRevision {
        &self.runs
    }
}
