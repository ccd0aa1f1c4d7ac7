//! Informers: the API server's objects of a kind, kept up to date as records.
//!
//! ```text
//!  list, pages of 500 ─┐                      ┌──► Store: get, owned_by          (reads, any time)
//!             bytes ────├─► Projection ─► Record ─►─┤
//!  watch, bookmarks ───┘              ▲       └──► subscribers: Change           (only when a record differs)
//!                                     └── responses to our own writes
//! ```
//!
//! Each informer is one task with its own backoff, so that a kind that cannot be watched does not disturb others. It is shared by
//! all readers of the same kind, scope and selector, and ends with its last [`Handle`].
//!
//! **Guarantees for subscribers.** From the moment its handle exists, a subscriber is notified of every change of a record,
//! outside all locks. It finds earlier objects in the store, once its handle is [`WatchState::Synced`]; together nothing is
//! missed. Changes of one object may be reported twice or out of order when a response and an event cross: a subscriber notes the
//! key and reads the store, which never goes back to an older state unless the API server does. A subscriber must not block.
//!
//! **An unreadable object** affects only itself: it is reported ([`Reports`]), and the other objects of its list or watch are
//! processed. Its record lacks the unreadable part and says so ([`Record::fault`]); if a record is useless without that part, the
//! previous record stays.

mod informer;
mod owned;
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

use orkestra_object::ObjectKey;
pub use orkestra_object::record::{Presence, Record, Spec, Unrecorded};

pub use self::{
    informer::handle::{Handle, MemoryUse, Store},
    registry::{Informers, Stats},
    scoped::{Scoped, Stores},
    unread::{Report, Reports},
};
use super::requests::{ClusterError, Scope, Served};

/// The subject of an informer. Equal ones share a watch.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Watched {
    /// The kind.
    pub served: Served,
    /// Which of its objects.
    pub scope: Scope,
}

/// The state of a watch, for one handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The first list, or the list that this handle's fields require, is in progress.
    Starting,
    /// The store shows the state of the API server, delayed only by the network.
    Synced,
    /// The kind cannot be read at the moment; the watch is retried indefinitely.
    Failing {
        /// The cause.
        problem: WatchProblem,
        /// Whether the store shows at least an earlier state.
        was_synced: bool,
    },
}

/// Why a kind cannot be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchProblem {
    /// The API server does not serve it: its CRD is missing, or does not have this version.
    NotServed,
    /// The permission to list or watch is missing.
    Forbidden {
        /// The API server's message.
        message: String,
    },
    /// The API server does not answer, or answers with an error.
    Unavailable {
        /// The error.
        message: String,
        /// Whether this has lasted for more than a minute while the API server itself was reachable.
        is_lasting: bool,
    },
}

impl WatchProblem {
    /// The problem that a failed request for a kind shows.
    pub fn of(error: &ClusterError) -> Self {
        match error {
            ClusterError::NotServed(_) | ClusterError::NotFound(_) => Self::NotServed,
            ClusterError::Forbidden { .. } | ClusterError::Denied { .. } => Self::Forbidden {
                message: error.to_string(),
            },
            _ => Self::Unavailable {
                message: error.to_string(),
                is_lasting: false,
            },
        }
    }
}

/// A change of one object's record.
///
/// If `before` and `after` are the same record, the response to our own write arrived before the event of another client's
/// change: the record includes that change, but no subscriber was notified of it.
#[derive(Debug)]
pub struct Change<R> {
    /// The object.
    pub key: ObjectKey,
    /// The previous record; `None` if the object is new.
    pub before: Option<Arc<R>>,
    /// The current record; `None` if the object is gone.
    pub after: Option<Arc<R>>,
}

/// Receives changes. It is called from the watch's task and from callers of [`Store::answer`], and must not block.
pub type Subscriber<R> = Arc<dyn Fn(&Change<R>) + Send + Sync>;
