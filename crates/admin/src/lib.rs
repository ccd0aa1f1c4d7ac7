//! The tools of administrators.
//!
//! ```text
//!  install   the chart to objects, applied and removed
//!  support   support bundles; reads only
//!  gitops    settings of Argo CD and Flux
//!  migrate   stored objects to the storage version of their definition
//!  operate   suspend, resume, reconcile
//!  published where the releases of this build are published
//! ```

pub mod gitops;
pub mod install;
pub mod migrate;
pub mod operate;
pub mod published;
pub mod support;
