//! Basic services of Orkestra's process; the crate has no dependency on Kubernetes.
//!
//! - [`Clock`] and [`Entropy`]: time of day and randomness, injected so that tests can control and replay them.
//! - [`BootClock`]: a monotonic clock that includes the time in suspend.
//! - [`Backoff`]: growing delays between retries.
//! - [`chain`]: an error with its causes, for messages.
//! - [`tasks`]: the only place where tasks are started, with the consequence of each task's end.
//! - [`terminal`]: text that others wrote, for a terminal.
//! - [`changes`]: waits for changes of watched values.

mod backoff;
mod boot;
pub mod changes;
mod clock;
mod entropy;
mod error;
pub mod tasks;
pub mod terminal;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub use self::{
    backoff::Backoff,
    boot::{BootClock, Moment},
    clock::Clock,
    entropy::Entropy,
    error::chain,
};
