//! Labels and annotations of `ApplySets`.
//!
//! Source: Kubernetes, KEP-3659, "kubectl apply --prune".

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};

/// Label on parents of `ApplySets`: the identifier of the set. Source: KEP-3659.
pub const LABEL_ID: &str = "applyset.kubernetes.io/id";
/// Label on members of `ApplySets`: the identifier of their set.
pub const LABEL_PART_OF: &str = "applyset.kubernetes.io/part-of";
/// Annotation on parents of `ApplySets`: the tool that manages the set. Others refuse to change it.
pub const ANNOTATION_TOOLING: &str = "applyset.kubernetes.io/tooling";
/// Annotation on parents of `ApplySets`: the group-kinds of the members, as `Kind.group`, sorted.
pub const ANNOTATION_CONTAINS: &str = "applyset.kubernetes.io/contains-group-kinds";
/// The tool and the version of its use of `ApplySets`: not the version of a release, which would change every parent.
pub const TOOLING: &str = "orkestra/v1.0.0";

/// The identifier of the `ApplySet` whose parent is that object.
///
/// Source: KEP-3659: base64 for URLs, without padding, of the SHA-256 of `name.namespace.kind.group`.
pub fn id(name: &str, namespace: Option<&str>, kind: &str, group: &str) -> String {
    let text = format!("{name}.{}.{kind}.{group}", namespace.unwrap_or_default());
    let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text));
    format!("applyset-{hash}-v1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::names;

    /// Computed by another implementation.
    #[test]
    fn the_identifier_of_an_apply_set_is_that_of_the_kep() {
        let namespaced = id("deep", Some("shop"), "Pond", "water.example");
        assert_eq!(
            namespaced,
            "applyset-zZ05bR_biCqWr6AxciJRXymR2OY6DNpJXlH8x2fOGMY-v1"
        );
        let of_cluster = id("deep", None, "Sea", "water.example");
        assert_eq!(
            of_cluster,
            "applyset-feYrYxJ4UvObgD9hgJ0wUfZJ9DztGi1njzIGcwoyKVc-v1"
        );
        assert_eq!(names::check_label_value(&namespaced), Ok(()));
    }
}
