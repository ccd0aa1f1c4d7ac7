//! Shorthand to whole objects: each kind of child that a Katalog can declare, one file a kind.
//!
//! ```text
//!  deployments: [{ image, replicas, .. }] ── expand ──► Tree of an apps/v1 Deployment, expressions at its leaves
//! ```
//!
//! It runs once, at compile time. What every object has (`apiVersion`, `kind`, the user's labels and annotations) is put
//! in by `plan`; name, namespace and what ownership adds are put in by a pass.

pub(crate) mod config;
pub(crate) mod custom;
pub(crate) mod deployment;
mod env;
pub(crate) mod pod;
pub(crate) mod probes;
pub(crate) mod scope;
pub(crate) mod service;

use crate::api::scalar::Scalar;

/// Longest DNS label, in bytes.
const LABEL_BYTES: usize = 63;

/// Whether a port is given: nothing and 0 are none.
fn is_given(port: Option<&Scalar>) -> bool {
    port.is_some_and(|port| !matches!(port.to_string().trim(), "" | "0"))
}

/// The name of the one container of the workload `name`: the same name where that is a DNS label, else the nearest
/// label to it. It needs to be unique in its pod only.
///
/// Source: Kubernetes API reference, `Container.name`.
pub fn container_name(name: &str) -> String {
    let mut label = name.replace('.', "-");
    label.truncate(label.floor_char_boundary(LABEL_BYTES));
    label.truncate(label.trim_end_matches('-').len());
    label
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
}
