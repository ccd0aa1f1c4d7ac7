//! One CRD's operator: informers with records, a keyed queue, workers, the executor.
//!
//! ```text
//!  watch ── Node ── record ──► store ── change ──► queue ──► worker: observe ─ step ─ execute ─ status
//!                                ▲                                       │
//!                                └───────────── answers to our writes ◄──┘
//! ```

pub mod context;
pub mod entropy;
pub mod operator;
pub mod queue;
pub mod watch;
pub mod wire;

pub use operator::{Operator, OperatorStatus, Phase, Problem};
