//! The command line of Orkestra: `ork`, in the cluster and on the desk.
//!
//! ```text
//!  ork (cli) ──► author: render, simulate, diff, e2e, init, publish
//!            ├─► admin: install, support, gitops, migrate
//!            └─► controller ──► operator: watches, queues, passes
//!                  ├─► gateway: webhooks
//!                  └─► http_api: probes, pages, metrics
//! ```
//!
//! A file per command, without logic that a library user would miss.

pub mod cli;
pub mod telemetry;

#[cfg(test)]
#[path = "../build/git.rs"]
mod git;
#[cfg(test)]
mod sources;

/// The commit of this build, or `unknown`: that of `make release` and of packagers, else that of the checkout, whose local changes it
/// does not tell.
pub const COMMIT: &str = env!("ORK_BUILD_COMMIT");

/// The versions of Kubernetes that the tests run against.
pub const KUBERNETES: [&str; 1] = ["1.34"];
