//! What every part of Orkestra's process stands on; it knows nothing of Kubernetes.
//!
//! - [`Clock`] and [`Entropy`]: time of day and randomness, injected, so that a run can be replayed.
//! - [`BootClock`]: a clock that counts the time in suspend.
//! - [`Backoff`]: growing delays between retries.
//! - [`chain`]: an error with its causes, for messages.
//! - [`tasks`]: the one place where tasks start, and what the end of each means.
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
