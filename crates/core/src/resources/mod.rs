//! Shorthand to whole objects: each kind of child that a Katalog can declare, one file a kind.
//!
//! ```text
//!  deployments: [{ image, replicas, .. }] ── expand ──► Tree of an apps/v1 Deployment, expressions at its leaves
//! ```
//!
//! It runs once, at compile time. What every object has (`apiVersion`, `kind`, the user's labels and annotations) is put
//! in by `plan`, and so is the entry's `patch`; name, namespace and what ownership adds are put in by a pass.

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
pub(crate) mod scope;
mod security;
mod service;
mod service_account;
mod shorthand;
mod stateful_set;
mod storage_class;
pub(crate) mod workload;

pub(crate) use security::{context, pod_context};
pub(crate) use shorthand::{Child, Metadata, Pods, Row, Shorthand, Source};
pub(crate) use workload::Workload;

use crate::api::scalar::Scalar;

/// Longest DNS label, in bytes.
const LABEL_BYTES: usize = 63;

/// Whether a port is given: nothing and 0 are none.
fn is_given(port: Option<&Scalar>) -> bool {
    port.is_some_and(|port| !matches!(port.to_string().trim(), "" | "0"))
}

/// The name of the container of `image` in the workload `name`: the same name where that is a DNS label, else the nearest
/// label to it. It needs to be unique in its pod only.
///
/// Source: Kubernetes API reference, `Container.name`.
pub fn container_name(name: &str) -> String {
    let mut label = name.replace('.', "-");
    label.truncate(label.floor_char_boundary(LABEL_BYTES));
    label.truncate(label.trim_end_matches('-').len());
    label
}

/// The image with the tag, unless it has a tag or a digest already. An empty tag is none.
pub fn tagged_image(image: &str, tag: &str) -> String {
    let name = image.rsplit('/').next().unwrap_or(image);
    if tag.is_empty() || image.is_empty() || name.contains([':', '@']) {
        return image.to_owned();
    }
    format!("{image}:{tag}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_has_the_name_of_its_workload_as_far_as_a_label_can() {
        assert_eq!(container_name("shop-web"), "shop-web");
        assert_eq!(container_name("shop.web"), "shop-web");
        assert_eq!(
            container_name(&format!("{}.web", "a".repeat(62))),
            "a".repeat(62)
        );
    }

    #[test]
    fn a_tag_is_put_on_an_image_that_has_none() {
        for (image, tag, whole) in [
            ("redis", "8", "redis:8"),
            ("registry:5000/redis", "8", "registry:5000/redis:8"),
            ("redis:7", "8", "redis:7"),
            ("redis@sha256:00", "8", "redis@sha256:00"),
            ("redis", "", "redis"),
        ] {
            assert_eq!(tagged_image(image, tag), whole);
        }
    }
}
