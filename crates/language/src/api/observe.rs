//! `operatorBox.observe`: objects and Events that trigger a reconcile pass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scalar::Text;

/// Objects and Events that trigger a reconcile pass, in addition to the custom resource, its children and the objects that
/// templates read.
///
/// Objects that exist when the operator starts to watch are not changes: every custom resource is reconciled then. Changes
/// during an interrupted watch trigger a reconcile pass when the watch resumes, except for objects that were created and
/// deleted in between.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Observe {
    /// Objects whose changes trigger a reconcile pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<Watch>,
    /// Events that trigger a reconcile pass, by name. The latest Event of a custom resource is at `.events.<name>`, which is
    /// empty if there is none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, EventFilter>,
    /// Path of a file with further `watch` and `events`, relative to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
}

/// Objects whose changes trigger a reconcile pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Watch {
    /// `apiVersion` of the objects.
    pub api_version: Text,
    /// Kind of the objects. While the kind is not served, the operator reports it and continues without this watch.
    pub kind: Text,
    /// Namespace of the objects. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of the objects. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A list of the changes that trigger a reconcile pass. An update that only affects `metadata.resourceVersion` or
    /// `metadata.managedFields` is not a change. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<Change>>,
    /// Mapping from the object to the custom resource. Default: the controller among the object's owner references, or the
    /// owner that Orkestra's label names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_from: Option<KeyFrom>,
    /// Indexes for reconcilers in code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    pub index: Option<Vec<Index>>,
}

/// A change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The object was created.
    Create,
    /// The object was updated.
    Update,
    /// The object was deleted.
    Delete,
}

/// The mapping from an object to a custom resource: by `label` or by `name`. If the value is empty, no reconcile pass is
/// triggered.
///
/// If no namespace is set, the object's namespace is used. A cluster-scoped object maps to the custom resources of that name in
/// all namespaces.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KeyFrom {
    /// The label of the object that holds the name of the custom resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Name of the custom resource. Templates read the object: `{{ .spec.claimRef.name }}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Namespace of the custom resource, used with `name`. Templates read the object. Default: the object's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
}

/// An index for reconcilers in code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Name of the index.
    pub name: String,
    /// The path of the indexed field.
    pub field: String,
}

/// Events (events.k8s.io/v1) that trigger a reconcile pass. All fields that are set must match, and at least one must be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventFilter {
    /// Reason of the Event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Action of the Event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// Type of the Event.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<EventType>,
    /// Name of the reporting controller. Events of `orkestra`, which reconcile passes emit themselves, match only if it is
    /// named here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting_controller: Option<String>,
    /// ID of the reporting controller's instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reporting_instance: Option<String>,
    /// Namespace of the Event: that of the object that it regards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// A list of the changes that trigger a reconcile pass. Kubernetes updates an Event that occurs again, and deletes one
    /// after an hour. Templates always read the current state. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on: Option<Vec<Change>>,
    /// The object that the Event regards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regarding: Option<ObjectFilter>,
    /// The secondary object that the Event regards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub related: Option<ObjectFilter>,
    /// Mapping from the Event to the custom resource. Templates read the Event. Default: `regarding` is the custom resource, or
    /// one of its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_from: Option<KeyFrom>,
}

/// The type of an Event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum EventType {
    /// Informational.
    Normal,
    /// A problem.
    Warning,
}

/// An object that an Event regards.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectFilter {
    /// `apiVersion` of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
