//! Genuine registries and tools on loopback, for the tests beside.
//!
//! The tools are those of `hack/registry`, which builds what is missing: no test is left out because one is not there.

mod process;
mod registry;
mod token;

pub use process::{Ran, Workspace, ork, tools};
pub use registry::{Access, Registry};
