//! `ValidatingAdmissionPolicies` for protection against deletion and of namespaces.

use crate::{plan::Plan, value::Node};

/// What protection depends on beside the Katalog.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProtectionOptions {
    /// The users that are never refused: the identities of Orkestra itself.
    pub users: Vec<String>,
    /// The namespace of Orkestra: its own Deployment, Service and the like there are protected too.
    pub namespace: Option<String>,
}

/// Returns the policies, each followed by its binding, for `security` of `plan`; sorted by name.
pub fn protection(_plan: &Plan, _options: &ProtectionOptions) -> Vec<Node> {
    Vec::new()
}
