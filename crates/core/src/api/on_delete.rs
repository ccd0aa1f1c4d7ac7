//! `onDelete`: what is done before a custom resource goes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::later::Refused;
use super::operator_box::Lifecycle;

/// The end of a custom resource does not wait for another server.
const NO_CALLS: &str = "no call is made when a custom resource goes: let a Job make it";

/// What is done before a custom resource goes: Jobs are made and awaited until they are complete or have
/// failed, everything else that is listed is deleted. The resource stays until all of it is done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["external"], NO_CALLS))]
pub struct OnDelete {
    /// What is done at once, or first where `ordered` is true.
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
    /// `true` goes through `groups` one after the other; each begins when all of the one before is done.
    /// Default `false`: all at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ordered: Option<bool>,
    /// How long all of it may take, from the deletion on. After that nothing more is begun, and the
    /// resource stays until what was begun ends. Default `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Steps, each with Jobs and objects of its own. One whose `when` does not hold is passed over.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<DeleteGroup>,
}

/// A step of `onDelete`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["external"], NO_CALLS))]
pub struct DeleteGroup {
    /// What the step is called; it is shown while it is awaited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the step does.
    #[serde(flatten)]
    pub lifecycle: Lifecycle,
}
