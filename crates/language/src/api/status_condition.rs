//! `status.conditions`: custom conditions on custom resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate::GateCondition;
use super::scalar::{Scalar, Text};

/// Enables the automatic conditions, or lists custom conditions in addition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum StatusConditions {
    /// If `true`, the automatic conditions are written.
    Automatic(bool),
    /// Custom conditions, in addition to the automatic ones.
    Own(Vec<StatusCondition>),
}

/// A custom condition in the status of the custom resource. `lastTransitionTime` changes only when the condition's status
/// changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCondition {
    /// Type of the condition, in one word such as `BackedUp`. `Ready`, `Reconciling`, `Stalled` and `FieldConflict` are written
    /// by Orkestra.
    #[serde(rename = "type")]
    pub type_: String,
    /// Status of the condition: `True`, `False` or `Unknown`, or a template for one. Empty means `Unknown`. Default: whether
    /// `when` and `or` hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Scalar>,
    /// The reason for the status, in one word. Default: the type, with `Not` before it where the status is `False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// A human-readable message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// Conditions that must all hold. Without `status`, the condition is true if they hold, else false. With `status`, the
    /// condition stays unchanged if they do not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold. If `when` is also set, both apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
}
