//! Leader election: of several processes one writes, the others follow with warm caches.
//!
//! ```text
//!  Lease ── watch ──► Elector ── asks ──► Election (pure: when to try, to renew, to yield)
//!    ▲                  │ │
//!    └── PUT, POST ◄────┘ ├─► Gate         refuses writes that the lease does not cover
//!                         └─► Leadership   who leads, for all who ask
//! ```
//!
//! The lock is compare-and-swap: a Lease is made by POST and changed by PUT with the resourceVersion that was seen, so that of
//! two who try one is refused. Whether another's lease has run out is judged by when *this* process saw it change last, never
//! by the times that are written in it: clocks of different machines need not agree. Source: client-go, `leaderelection`.
//!
//! Three things together see to it that a process which has lost its lease writes nothing: it yields when it could not renew
//! for [`Timing::renew_deadline`], which is earlier than anybody may take over; passes that run are dropped then; and the
//! [`Gate`] asks the clock before each write, also of a process that stood still and wakes in the middle of one. The clock is one
//! that counts the time in suspend, and the elector has a thread of its own, so that no pass, however long, holds up a renewal.

mod election;
mod elector;
mod leadership;
mod lease;
mod thread;
mod watch;

pub(crate) use self::elector::identity;
pub use self::{
    election::{Election, Record, Step, Timing},
    elector::Candidacy,
    leadership::{Leadership, Standing},
    thread::Elector,
};

/// Where the kernel tells the machine's name.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// The name of the Pod, or of the machine: for people who read who leads.
pub fn host() -> String {
    let variables = ["POD_NAME", "HOSTNAME"];
    let told = variables.iter().filter_map(|name| std::env::var(name).ok());
    let kernel = std::iter::once_with(|| std::fs::read_to_string(HOSTNAME).unwrap_or_default());
    told.chain(kernel)
        .map(|name| name.trim().to_owned())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "orkestra".to_owned())
}
