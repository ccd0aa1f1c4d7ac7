//! `operatorBox.observe`: objects and Events that lead to a pass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scalar::Text;

/// Objects and Events that lead to a pass, beside the custom resource, its children and what templates read.
///
/// What exists when the operator starts to watch is no change: every custom resource has a pass then. What changed while
/// a watch was interrupted leads to a pass when it goes on, but for what was made and deleted again meanwhile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Observe {
    /// Objects whose changes lead to a pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<Watch>,
    /// Events that do. The latest one of a custom resource is at `.events.<name>`, or that is empty.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, EventFilter>,
    /// File with more of both, relative to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
}

/// Objects whose changes lead to a pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// Their `apiVersion`.
    pub api_version: Text,
    /// Their kind. While it is not served, the operator says so and goes on without.
    pub kind: Text,
    /// Their namespace. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Their name. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The changes. A new version that differs only in `metadata.resourceVersion` or `metadata.managedFields` is none.
    /// Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<Change>>,
    /// How the custom resource is found. Default: it is the controller among the object's owner references, or what our
    /// label for owners names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_from: Option<KeyFrom>,
    /// Indexes for code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    pub index: Option<Vec<Index>>,
}

/// A change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// It was made.
    Create,
    /// It is another than before.
    Update,
    /// It is gone.
    Delete,
}

/// How the custom resource that belongs to an object is found: by `label` or by `name`. What is empty leads nowhere.
///
/// Without a namespace it is the object's; an object that has none leads to the custom resources of that name in all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyFrom {
    /// The object's label that holds its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its name. Templates read the object: `{{ .spec.claimRef.name }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Its namespace, beside `name`, in the same way. Default: the object's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
}

/// An index for code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Its name.
    pub name: String,
    /// The path that it is over.
    pub field: String,
}

/// Events (events.k8s.io/v1) that lead to a pass. All that is given must be so, and something must be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventFilter {
    /// The event's reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The event's action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The event's type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<EventType>,
    /// Who reports it. Events of `orkestra`, which passes make themselves, count only where it is named here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting_controller: Option<String>,
    /// Which instance reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting_instance: Option<String>,
    /// The event's namespace: that of what it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The changes that lead to a pass; Kubernetes updates an event that happens again, and deletes one after an hour. What
    /// templates see is up to date in every pass. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<Change>>,
    /// The object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regarding: Option<ObjectFilter>,
    /// The other object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<ObjectFilter>,
    /// How the custom resource is found; templates read the event. Default: `regarding` is the custom resource, or one of
    /// its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_from: Option<KeyFrom>,
}

/// How grave an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    /// Something happened.
    Normal,
    /// Something is wrong.
    Warning,
}

/// An object that an event is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectFilter {
    /// Its `apiVersion`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Its kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
