//! Responses about custom resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Custom resources of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Instances {
    /// The operator's entry in `spec.crds`.
    pub(crate) crd: String,
    /// The custom resources.
    pub(crate) items: Vec<Item>,
    /// Whether there are more.
    pub(crate) truncated: bool,
    /// Token for the next page, if there is one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
}

/// The summary of a custom resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Item {
    /// Its name.
    pub(crate) name: Option<String>,
    /// Its namespace; null if the kind is cluster-scoped.
    pub(crate) namespace: Option<String>,
    /// `status.phase`, if it is text.
    pub(crate) phase: Option<String>,
    /// Status of its condition `Ready`; null if it is missing or `Unknown`.
    pub(crate) ready: Option<bool>,
    /// Its age, in the format of kubectl.
    pub(crate) age: Option<String>,
    /// `metadata.generation`.
    pub(crate) generation: Option<i64>,
    /// Whether it is being deleted.
    pub(crate) deleting: bool,
    /// The value at the path of `?field=`; null if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value: Option<Value>,
    /// True if the value is too large to be shown completely: over 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) value_truncated: Option<bool>,
}

/// A custom resource with its children.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Instance {
    /// Its summary.
    #[serde(flatten)]
    pub(crate) item: Item,
    /// Its status; null if there is none.
    pub(crate) status: Value,
    /// Its children by kind: at most 100 of each kind that the operator declares.
    pub(crate) children: BTreeMap<String, Vec<Child>>,
    /// Why the children of a kind could not be read, by kind.
    pub(crate) unavailable: BTreeMap<String, String>,
    /// Whether children are omitted.
    pub(crate) truncated: bool,
}

/// A child of a custom resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Child {
    /// Its name.
    pub(crate) name: Option<String>,
    /// Its namespace; null if the kind is cluster-scoped.
    pub(crate) namespace: Option<String>,
    /// Whether it matches its spec, by the rules of kstatus. Of Secrets only metadata is read; they are always ready.
    pub(crate) ready: bool,
    /// What it waits for.
    pub(crate) message: Option<String>,
    /// `spec.replicas`, if the kind has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) replicas: Option<i64>,
    /// `status.readyReplicas`, if the kind has `spec.replicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ready_replicas: Option<i64>,
}
