//! Expands shorthand to whole objects, with one file for each kind of child that a Katalog can declare.
//!
//! ```text
//!  deployments: [{ image, replicas, .. }] ── expand ──► Tree of an apps/v1 Deployment, expressions at its leaves
//! ```
//!
//! Expansion runs once, at compile time. `plan` adds the parts common to all objects (`apiVersion`, `kind`, the user's
//! labels and annotations) and the entry's `patch`; a pass adds name, namespace and ownership metadata.

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

/// True if a port is given: an empty port and 0 are not.
fn is_given(port: Option<&Scalar>) -> bool {
    port.is_some_and(|port| !matches!(port.to_string().trim(), "" | "0"))
}

/// Returns the name of the container of `image` in the workload `name`: the same name if that is a DNS label, else the
/// nearest label to it. It must be unique only within its pod.
///
/// Source: Kubernetes API reference, `Container.name`.
pub fn container_name(name: &str) -> String {
    let mut label = name.replace('.', "-");
    label.truncate(label.floor_char_boundary(LABEL_BYTES));
    label.truncate(label.trim_end_matches('-').len());
    label
}

/// Returns the image with the tag, unless it has a tag or a digest already. An empty tag is ignored.
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
