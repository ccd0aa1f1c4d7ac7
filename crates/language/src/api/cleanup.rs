//! `runtime.cleanup`: custom resources that are deleted when they are no longer needed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{duration::Span, gate::Gates};

/// Tasks of an operator other than reconciling.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BoxRuntime {
    /// Deletes custom resources that are no longer needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<Cleanup>,
}

/// Deletion of custom resources by their operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cleanup {
    /// The duration for which the conditions must hold before the custom resource is deleted, such as `24h`. Default `0s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete_after: Option<Span>,
    /// The conditions; at least one is required.
    #[serde(flatten)]
    pub gates: Gates,
}
