//! The part of `ork e2e` without I/O: the calls of a document and the evaluation of their results.
//!
//! ```text
//!  E2eSpec ── gates ──► conditions of expectations ── is_open ──► run or skipped
//!     └────── calls, commands ──► ProgramCall ── run by `ork e2e` ──► CallOutput ── judge ──► a diff; empty if met
//!     └────── resources ──► objects of the cluster ── check_resource ──► a diff
//! ```

mod assertions;
mod calls;
mod check;
mod gate;
mod judge;
mod resources;
#[cfg(test)]
mod tests;

pub use assertions::wrong_assertions;
pub use calls::{Argument, CallAction, Filter, Forward, ProgramCall, calls, commands};
pub use check::{Expected, read_e2e, read_expectations};
pub use gate::{gates, is_open};
pub use judge::{CallOutput, judge};
pub use resources::check_resource;
