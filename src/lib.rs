//! An operator of operators: it compiles Katalogs and runs the operators that they declare.
//!
//! ```text
//!  meta ── starts, reconfigures, stops ──► runtime (one operator per CRD) ──► client ──► the cluster
//!   │ publishes                              │ counts        │ reports
//!   ▼                                        ▼               ▼
//!  server (probes, /katalog)              metrics          events
//! ```
//!
//! `gateway` answers the API server's webhooks, in every replica, or in a separate process.
//!
//! One of several replicas is active: `lead` elects it, and prevents writes by the others.
//!
//! Commands: `files` finds, reads and compiles Katalogs, `render` prints the objects that they create, and `diff` the changes that
//! they make to a cluster. `publish` builds artifacts for registries, and `init` writes a first Katalog. `install` installs
//! Orkestra in a cluster. `simulate` tests Katalogs in memory, `e2e` on a cluster.
//!
//! The language, plans and the reconcile pass, which do no I/O, are in `orkestra-core`.

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
