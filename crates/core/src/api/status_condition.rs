//! Conditions of one's own on custom resources.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate::GateCondition;
use super::scalar::{Scalar, Text};

/// Whether conditions are written, or which beside the automatic ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum StatusConditions {
    /// Whether the automatic ones are written.
    Automatic(bool),
    /// These too.
    Own(Vec<StatusCondition>),
}

/// A condition of one's own in the status of the custom resource. Its time moves only when its status does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCondition {
    /// What it is about, in one word such as `BackedUp`. `Ready`, `Reconciling`, `Stalled` and `FieldConflict` are written
    /// by Orkestra.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`, or a template for one; nothing is `Unknown`. Default: whether `when` and `or` hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Scalar>,
    /// Why, as one word. Default: the type, with `Not` before it where the status is `False`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Text>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// Without `status` the condition is true when all hold, else false. With it all must hold, or the condition stays as
    /// it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold. Beside `when` both count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
}
