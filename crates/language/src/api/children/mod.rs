//! Children: the objects that an operator creates for a custom resource. Each file holds one group of kinds.

mod common;
mod config;
mod custom;
mod env;
mod identity;
mod lifecycle;
mod network;
mod pod;
mod storage;
mod workload;

pub use common::*;
pub use config::*;
pub use custom::*;
pub use env::*;
pub use identity::*;
pub use lifecycle::ListEntry;
pub use lifecycle::{ChildList, Lifecycle};
pub use network::*;
pub use pod::*;
pub use storage::*;
pub use workload::*;
