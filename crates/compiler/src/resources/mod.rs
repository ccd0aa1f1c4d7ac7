//! Expands shorthand to whole objects, with one file for each kind of child that a Katalog can declare.
//!
//! ```text
//!  deployments: [{ image, replicas, .. }] ── expand ──► ObjectTree of an apps/v1 Deployment, expressions at its leaves
//! ```
//!
//! Expansion runs once, at compile time. `compile` adds the parts common to all objects (`apiVersion`, `kind`, the user's
//! labels and annotations) and the entry's `patch`; a pass adds name, namespace and ownership metadata.

pub(crate) mod amount;
mod bindings;
pub(crate) mod config;
mod cron_job;
pub(crate) mod custom;
mod daemon_set;
mod deployment;
mod env;
pub(crate) mod hpa;
pub(crate) mod ingress;
mod job;
pub(crate) mod limit_range;
mod literals;
mod namespace;
pub(crate) mod network_policy;
pub(crate) mod patch;
pub(crate) mod pdb;
mod persistent_volume;
mod persistent_volume_claim;
pub(crate) mod pod;
mod pods;
mod priority_class;
pub(crate) mod probes;
mod replica_set;
pub(crate) mod resource_quota;
mod roles;
mod security;
mod service;
mod service_account;
mod shorthand;
mod stateful_set;
mod storage_class;
pub(crate) mod workload;

use orkestra_language::api::scalar::Scalar;

pub(crate) use security::{context, pod_context};
pub(crate) use shorthand::{Child, CopySource, Metadata, Pods, Shorthand, Workload};

/// True if a port is given: an empty port and 0 are not.
fn is_given(port: Option<&Scalar>) -> bool {
    port.is_some_and(|port| !matches!(port.to_string().trim(), "" | "0"))
}
