//! Responses about custom resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Custom resources of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Instances {
    /// The operator's entry in `spec.crds`.
    pub(in crate::server) crd: String,
    /// The custom resources.
    pub(in crate::server) items: Vec<Item>,
    /// Whether there are more.
    pub(in crate::server) truncated: bool,
    /// Token for the next page, if there is one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub(in crate::server) next: Option<String>,
}

/// The summary of a custom resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Item {
    /// Its name.
    pub(in crate::server) name: Option<String>,
    /// Its namespace; null if the kind is cluster-scoped.
    pub(in crate::server) namespace: Option<String>,
    /// `status.phase`, if it is text.
    pub(in crate::server) phase: Option<String>,
    /// Status of its condition `Ready`; null if it is missing or `Unknown`.
    pub(in crate::server) ready: Option<bool>,
    /// Its age, in the format of kubectl.
    pub(in crate::server) age: Option<String>,
    /// `metadata.generation`.
    pub(in crate::server) generation: Option<i64>,
    /// Whether it is being deleted.
    pub(in crate::server) deleting: bool,
    /// The value at the path of `?field=`; null if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) value: Option<Value>,
    /// True if the value is too large to be shown completely: over 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) value_truncated: Option<bool>,
}

/// A custom resource with its children.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Instance {
    /// Its summary.
    #[serde(flatten)]
    pub(in crate::server) item: Item,
    /// Its status; null if there is none.
    pub(in crate::server) status: Value,
    /// Its children by kind: at most 100 of each kind that the operator declares.
    pub(in crate::server) children: BTreeMap<String, Vec<Child>>,
    /// Why the children of a kind could not be read, by kind.
    pub(in crate::server) unavailable: BTreeMap<String, String>,
    /// Whether children are omitted.
    pub(in crate::server) truncated: bool,
}

/// A child of a custom resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Child {
    /// Its name.
    pub(in crate::server) name: Option<String>,
    /// Its namespace; null if the kind is cluster-scoped.
    pub(in crate::server) namespace: Option<String>,
    /// Whether it matches its spec, by the rules of kstatus. Of Secrets only metadata is read; they are always ready.
    pub(in crate::server) ready: bool,
    /// What it waits for.
    pub(in crate::server) message: Option<String>,
    /// `spec.replicas`, if the kind has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) replicas: Option<i64>,
    /// `status.readyReplicas`, if the kind has `spec.replicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) ready_replicas: Option<i64>,
}
