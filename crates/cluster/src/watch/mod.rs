//! Informers: what the API server has of a kind, kept up to date as records.
//!
//! ```text
//!  list, pages of 500 ─┐                      ┌──► Store: get, owned_by          (reads, any time)
//!             bytes ────├─► Sieve ─► Record ─►─┤
//!  watch, bookmarks ───┘              ▲       └──► subscribers: Change           (only when a record differs)
//!                                     └── answers to our own writes
//! ```
//!
//! Each informer is one task with one backoff of its own, so that a kind that cannot be watched disturbs no other. It is
//! shared by everybody who asks for the same kind, scope and selector, and ends with its last [`Handle`].
//!
//! **What a subscriber may rely on.** From the moment its handle exists it is told of every change of a record, outside
//! all locks. What was there before it finds in the store, once its handle is [`WatchState::Synced`]; together nothing is
//! missed. Changes of one object may be told twice or out of order when an answer and an event cross: a subscriber notes
//! the key and reads the store, which never goes back, unless the API server does. It must not block.
//!
//! **An object that cannot be read** is one object's trouble: it is reported ([`Reports`]), and the others of its list or watch go
//! on. Its record lacks what cannot be read and says so ([`Record::fault`]); one that is nothing without that stays as it was.

mod crds;
mod handle;
mod informer;
mod owned;
mod record;
mod reflector;
mod registry;
mod scoped;
mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod unread;

use std::sync::Arc;

use orkestra_core::plan::ObjectKey;

pub use self::{
    crds::Crds,
    handle::{Handle, Held, Store},
    record::{Presence, Record, Spec, Unrecorded},
    registry::{Informers, Stats},
    scoped::{Scoped, Stores},
    unread::{Report, Reports},
};
use super::wire::{Scope, Served};

/// What an informer is of. Equal ones share a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watched {
    /// The kind.
    pub served: Served,
    /// Which of its objects.
    pub scope: Scope,
}

/// How a watch is doing, for one handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The first list, or the one that this handle's reads ask for, is under way.
    Starting,
    /// The store shows what the API server has, late by no more than the network is slow.
    Synced,
    /// It cannot be read at the moment; it is tried again for ever.
    Failing {
        /// Why.
        problem: WatchProblem,
        /// Whether the store shows at least a former state.
        was_synced: bool,
    },
}

/// Why a kind cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchProblem {
    /// The API server does not serve it: its CRD is missing, or this version of it.
    NotServed,
    /// The right to list or watch is missing.
    Forbidden {
        /// What the API server says.
        message: String,
    },
    /// The API server does not answer, or with an error.
    Unavailable {
        /// What went wrong.
        message: String,
    },
}

/// What happened to one object's record.
///
/// Where `before` and `after` are the same record, a change of somebody else's was overtaken by the answer to our own
/// write: the record shows it, and nobody has been told.
#[derive(Debug)]
pub struct Change<R> {
    /// Which object.
    pub key: ObjectKey,
    /// What was kept of it; none where it is new.
    pub before: Option<Arc<R>>,
    /// What is kept of it; none where it is gone.
    pub after: Option<Arc<R>>,
}

/// Told of changes. It is called from the watch's task and from whoever answers, and must not block.
pub type Subscriber<R> = Arc<dyn Fn(&Change<R>) + Send + Sync>;
