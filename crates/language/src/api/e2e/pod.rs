//! The Pod that a call of `kubectl` selects.

use schemars::JsonSchema;
use serde::Deserialize;

/// Selects a Pod. One of the three must be set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodChoice {
    /// Name of the Pod.
    pub name: Option<String>,
    /// Labels of the Pod; of several, the first one by name.
    pub label_selector: Option<String>,
    /// The Pod that holds a Lease.
    pub leader_election: Option<LeaderElection>,
}

/// Selects the Pod that holds a Lease.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderElection {
    /// Name of the Lease.
    pub lease: String,
    /// Namespace of the Lease. Default: the namespace of the call.
    pub namespace: Option<String>,
}
