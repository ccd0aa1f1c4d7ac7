//! Fields of the language whose behaviour is not built yet.
//!
//! The types exist for their schemas: documents that declare such a field are checked inside it, and the diagnostic says that it is
//! not supported yet. When a field is built, it moves to the type that documents are read into.
#![expect(dead_code, reason = "only the schemas are used")]

mod box_;
mod calls;
mod entry;
mod gate;
mod security;
mod workloads;

pub(crate) use box_::{BoxLater, QueueLater};
pub(crate) use calls::{CallLater, CrossLater};
pub(crate) use entry::{DeprecationLater, EntryLater};
pub(crate) use gate::{ConditionLater, ControlLater, CustomLater};
pub(crate) use security::{KomposerLater, SpecLater};
pub(crate) use workloads::ReplicaSetLater;
