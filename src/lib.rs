//! An operator of operators: it compiles Katalogs and runs the operators that they declare.
//!
//! ```text
//!  meta ── starts, reconfigures, stops ──► runtime (one operator a CRD) ──► client ──► the cluster
//!   │ publishes                              │ counts        │ reports
//!   ▼                                        ▼               ▼
//!  server (probes, /katalog)              metrics          events
//! ```
//!
//! `gateway` answers the API server's webhooks, in each of them and alone.
//!
//! Of several such processes one is active; `lead` elects it, and keeps the others from writing.
//!
//! Without a cluster: `files` finds, reads and compiles Katalogs, `render` shows what they would create, `diff` what they would
//! change in a cluster, `publish` makes artifacts for
//! registries, and `init` writes a first one. `install` brings Orkestra itself into a cluster. `simulate` and `e2e` test them: in memory, and on a cluster.
//!
//! The pure part, the language, plans and the pass itself, is in `orkestra-core`.

mod certificates;
pub mod cli;
pub mod compose;
pub mod diff;
pub mod e2e;
pub mod events;
pub mod external;
pub mod files;
pub mod gateway;
pub mod gitops;
pub mod init;
pub mod install;
mod junit;
pub mod lead;
pub mod meta;
pub mod metrics;
pub mod migrate;
pub mod publish;
pub mod render;
pub mod runtime;
pub mod server;
pub mod simulate;
pub mod support;
pub mod telemetry;

#[cfg(test)]
mod sources;
#[cfg(test)]
mod testing;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The versions of Kubernetes that the tests run against.
pub const KUBERNETES: [&str; 1] = ["1.34"];
