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
    /// Token for the next page, where there is one.
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    pub(in crate::server) next: Option<String>,
}

/// A custom resource, in short.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Item {
    /// Its name.
    pub(in crate::server) name: Option<String>,
    /// Its namespace; null where the kind has none.
    pub(in crate::server) namespace: Option<String>,
    /// `status.phase`, if it is text.
    pub(in crate::server) phase: Option<String>,
    /// Status of its condition `Ready`; null where there is none, or it is `Unknown`.
    pub(in crate::server) ready: Option<bool>,
    /// How long ago it was created, as kubectl prints it.
    pub(in crate::server) age: Option<String>,
    /// `metadata.generation`.
    pub(in crate::server) generation: Option<i64>,
    /// Whether it is being deleted.
    pub(in crate::server) deleting: bool,
    /// The value at the path of `?field=`; null where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) value: Option<Value>,
    /// True where the value is too large to be shown whole: over 4 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) value_truncated: Option<bool>,
}

/// A custom resource with its children.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::server) struct Instance {
    /// In short.
    #[serde(flatten)]
    pub(in crate::server) item: Item,
    /// Its status; null where there is none.
    pub(in crate::server) status: Value,
    /// Its children by kind: at most 100 of each kind that the operator declares.
    pub(in crate::server) children: BTreeMap<String, Vec<Child>>,
    /// Why the children of a kind could not be read, by kind.
    pub(in crate::server) unavailable: BTreeMap<String, String>,
    /// Whether children are left out.
    pub(in crate::server) truncated: bool,
}

/// A child of a custom resource.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::server) struct Child {
    /// Its name.
    pub(in crate::server) name: Option<String>,
    /// Its namespace; null where the kind has none.
    pub(in crate::server) namespace: Option<String>,
    /// Whether it is as its spec says, by the rules of kstatus. Of Secrets nothing but metadata is read; they are always ready.
    pub(in crate::server) ready: bool,
    /// What it waits for.
    pub(in crate::server) message: Option<String>,
    /// `spec.replicas`, where the kind has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) replicas: Option<i64>,
    /// `status.readyReplicas`, where the kind has `spec.replicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::server) ready_replicas: Option<i64>,
}
