//! What Orkestra reports about a Katalog.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::conditions::Condition;

/// What Orkestra reports about a Katalog.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KatalogStatus {
    /// The generation of the spec that the rest of the status is about; -1 until one was seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// `Ready` always; `Reconciling` and `Stalled` only while they are true.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["type"]
    ))]
    pub conditions: Vec<Condition>,
    /// Operators that run, of those declared: `2/2`.
    pub ready: String,
    /// Custom resources of all operators.
    pub instances: i64,
    /// The revision that is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// A row for each operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub operators: Vec<OperatorStatus>,
    /// Kinds that are operated, or were and are not released yet: finalizers of ours may be on their
    /// resources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["group", "kind"]
    ))]
    pub operated: Vec<OperatedKind>,
}

/// What Orkestra reports about one operator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorStatus {
    /// The operator's name: its key in `spec.crds`.
    pub name: String,
    /// API group of its custom resource.
    #[serde(default)]
    pub group: String,
    /// Version of its custom resource.
    #[serde(default)]
    pub version: String,
    /// Kind of its custom resource.
    #[serde(default)]
    pub kind: String,
    /// What the operator is doing: `Running`, `Waiting`, `Stalled`, `Disabled` or `Stopping`.
    pub state: String,
    /// How many workers it has, without those that come and go with the queue.
    #[serde(default)]
    pub workers: u32,
    /// How many custom resources there are.
    #[serde(default)]
    pub instances: i64,
    /// How many of them are ready.
    #[serde(default)]
    pub ready: i64,
    /// Why the state is what it is, as one word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The same for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// A kind that is operated until it is released.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub struct OperatedKind {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Plural name in paths.
    pub plural: String,
    /// The version that is read and written.
    pub version: String,
}
