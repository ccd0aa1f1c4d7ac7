//! `onDelete`: the steps before a custom resource is deleted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::children::Lifecycle;
use super::duration::Span;
use super::later::Refused;

/// The end of a custom resource does not wait for another server.
const NO_CALLS: &str = "no call is made when a custom resource is deleted: use a Job";

/// Work to complete before a custom resource is deleted. Jobs are created, and must complete or fail; all other listed objects
/// are deleted. The custom resource stays until all of this is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["external"], NO_CALLS))]
pub struct OnDelete {
    /// What is done at once, or first where `ordered` is true.
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
    /// If `true`, `groups` are processed in order; each starts when the previous one is done. Default `false`: all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered: Option<bool>,
    /// The timeout for all work, measured from the deletion. After it nothing new is started, and the custom resource stays
    /// until started work ends. Default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// A list of steps, each with its own Jobs and objects. A step whose `when` does not hold is skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<DeleteGroup>,
}

/// A step of `onDelete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["external"], NO_CALLS))]
pub struct DeleteGroup {
    /// Name of the step. It is reported while the step is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the step does.
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
}
