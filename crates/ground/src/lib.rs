//! The base of every part of Orkestra's process; it has no dependency on Kubernetes.
//!
//! - [`Clock`] and [`Entropy`]: time of day and randomness, injected so that a run can be replayed.
//! - [`BootClock`]: a clock that includes time in suspend.
//! - [`Backoff`]: growing delays between retries.
//! - [`chain`]: an error with its causes, for messages.
//! - [`tasks`]: the only place where tasks start, with the consequence of each task's end.
//! - [`changes`]: waiting for watched values.

mod backoff;
mod boot;
pub mod changes;
mod clock;
mod entropy;
mod error;
pub mod tasks;

pub use self::{
    backoff::Backoff,
    boot::{BootClock, Moment},
    clock::Clock,
    entropy::Entropy,
    error::chain,
};
