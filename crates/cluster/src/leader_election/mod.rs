//! Leader election: one of several processes writes, the others follow with warm caches.
//!
//! ```text
//!  Lease ── watch ──► Elector ── asks ──► Election (pure: when to acquire, to renew, to give up)
//!    ▲                  │ │
//!    └── PUT, POST ◄────┘ ├─► Gate         refuses writes that the lease does not cover
//!                         └─► Leadership   the leader, for all readers
//! ```
//!
//! The lock is compare-and-swap: a Lease is created with POST and changed with PUT and the known resourceVersion, so that of two
//! attempts one is refused. Whether another's lease has expired depends on when *this* process last saw it change, never on the
//! times in the Lease: clocks of different machines need not agree. Source: client-go, `leaderelection`.
//!
//! Three mechanisms keep a process that has lost its lease from writing: it stops leading when it could not renew for
//! [`Timing::renew_deadline`], which is before others may take over; running passes are dropped then; and the gate of
//! `orkestra_cluster` reads the
//! clock before each write, which covers a process that was suspended during a pass. The clock counts the time in suspend, and
//! the elector has its own thread, so that even a long pass cannot delay a renewal.

mod election;
mod elector;
mod leadership;
mod lease;
mod thread;
mod watch;

pub use self::elector::identity;
pub use self::{
    election::{Election, ElectionStep, LeaseRecord, Timing},
    elector::CandidateConfig,
    leadership::{LeaderStatus, Leadership},
    thread::Elector,
};

/// The file with the machine's name.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";

/// Returns the name of the Pod or the machine, for people who look up the leader.
pub fn host() -> String {
    let variables = ["POD_NAME", "HOSTNAME"];
    let reported = variables.iter().filter_map(|name| std::env::var(name).ok());
    let kernel = std::iter::once_with(|| std::fs::read_to_string(HOSTNAME).unwrap_or_default());
    reported
        .chain(kernel)
        .map(|name| name.trim().to_owned())
        .find(|name| !name.is_empty())
        .unwrap_or_else(|| "orkestra".to_owned())
}
