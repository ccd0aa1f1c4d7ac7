//! The pure half of Orkestra: the Katalog language, its compilation to plans, and the reconcile pass.
//!
//! Nothing here does I/O, reads a clock or knows a Kubernetes client.

pub mod api;
pub mod cron;
pub mod diagnostics;
pub mod document;
pub mod plan;
pub mod reconcile;
pub mod reference;
pub mod resources;
pub mod schema;
pub mod template;
pub mod value;
