//! One CRD's operator: informers with records, a keyed queue, workers, the executor.
//!
//! ```text
//!  watch ── Node ── record ──► store ── change ──► queue ──► worker: observe ─ step ─ execute ─ status
//!                                ▲                                       │
//!                                └───────────── answers to our writes ◄──┘
//! ```

pub mod accepted;
mod autoscale;
mod bind;
mod bound;
mod cleanup;
pub mod context;
mod decide;
mod depends;
mod driver;
mod end;
mod execute;
mod finish;
mod generate;
pub mod health;
mod kinds;
mod log;
mod memory;
mod metadata;
mod meter;
pub mod normalize;
mod operator;
pub mod operators;
mod orphans;
mod pass;
mod publish;
pub mod queue;
mod replace;
mod requests;
mod shared;
mod sources;
mod standby;
mod tell;
mod uniques;
mod unread;
mod unreadable;
mod work;

pub use operator::{Operator, OperatorStatus, Phase, Problem, Role, Unfinished};
