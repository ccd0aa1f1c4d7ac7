//! Real registries and tools on loopback, for the tests in this crate.
//!
//! The tools come from `hack/registry`, which builds missing ones: no test is skipped because a tool is missing.

mod process;
mod registry;
mod token;

pub use process::{Ran, Workspace, ork, tools};
pub use registry::{Access, Registry};
