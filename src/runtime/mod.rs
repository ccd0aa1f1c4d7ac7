//! One CRD's operator: informers with records, a keyed queue, workers, the executor.
//!
//! ```text
//!  watch ── Node ── record ──► store ── change ──► queue ──► worker: observe ─ step ─ execute ─ status
//!                                ▲                                       │
//!                                └───────────── answers to our writes ◄──┘
//! ```

mod bound;
pub mod context;
mod decide;
mod driver;
pub mod entropy;
mod execute;
mod finish;
mod kinds;
mod memory;
mod metadata;
pub mod operator;
mod pass;
mod publish;
pub mod queue;
mod requests;
mod shared;
mod sources;
mod tell;
pub mod watch;
pub mod wire;
mod work;

pub use operator::{Operator, OperatorStatus, Phase, Problem, Role};
