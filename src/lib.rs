//! An operator of operators: Katalogs in, running operators out.
//!
//! ```text
//!  meta ── starts, reconfigures, stops ──► runtime (one operator a CRD) ──► client ──► the cluster
//!   │ publishes                              │ counts        │ tells
//!   ▼                                        ▼               ▼
//!  server (probes, /katalog)              metrics          events
//! ```
//!
//! Of several such processes one works; `lead` decides which, and keeps the others from writing.
//!
//! At the desk, without a cluster: `files` finds, reads and compiles Katalogs, `render` shows what they would create, `diff` what they would change in a
//! cluster, `publish` makes artifacts of folders for registries, and
//! `init` writes one to begin with.
//!
//! What is pure, the language, plans and the pass itself, is in `orkestra-core`.

mod certificates;
pub mod cli;
pub mod client;
pub mod diff;
pub mod events;
pub mod external;
pub mod files;
pub mod init;
pub mod lead;
pub mod meta;
pub mod metrics;
pub mod publish;
pub mod render;
pub mod runtime;
pub mod server;
pub mod simulate;
pub mod tasks;
pub mod telemetry;

#[cfg(test)]
mod testing;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The versions of Kubernetes that the tests run against.
pub const KUBERNETES: [&str; 1] = ["1.34"];
