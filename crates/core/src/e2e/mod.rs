//! The pure half of `ork e2e`: calls that a document asks for, and what their answers come to.
//!
//! ```text
//!  E2eSpec ── gates ──► conditions of expectations ── is_open ──► run or skipped
//!     └────── calls, commands ──► Call ── run by `ork e2e` ──► Answer ── judge ──► a diff; empty where it holds
//!     └────── resources ──► objects of the cluster ── check_resource ──► a diff
//! ```

mod assertions;
mod calls;
mod gate;
mod judge;
mod resources;
#[cfg(test)]
mod tests;

pub use assertions::wrong_assertions;
pub use calls::{Action, Call, Filter, Forward, Word, calls, commands};
pub use gate::{gates, is_open};
pub use judge::{Answer, judge};
pub use resources::check_resource;
