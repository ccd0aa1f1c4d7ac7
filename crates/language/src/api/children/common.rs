//! Fields that every child entry has.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::duration::Span;
use crate::api::gate::GateCondition;
use crate::api::later::Later;
use crate::api::or_template::OrTemplate;
use crate::api::scalar::Text;
use orkestra_object::value::Node;

/// Name and metadata of a child, and how it is handled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Common {
    /// Name and metadata.
    #[serde(flatten)]
    pub meta: Meta,
    /// How the child is handled.
    #[serde(flatten)]
    pub control: Control,
    /// A partial manifest that is merged into the generated object. `null` removes a field. Lists are merged by the keys that
    /// Kubernetes uses for them, such as the `name` of containers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub patch: BTreeMap<String, Node>,
}

/// Name and metadata of a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// Name of the object. The default is made of the custom resource's name and the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Namespace of the object. Default: the custom resource's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// Labels of the object, in addition to those that Orkestra sets.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub labels: OrTemplate<BTreeMap<String, Text>>,
    /// Annotations of the object, in addition to those that Orkestra sets.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub annotations: OrTemplate<BTreeMap<String, Text>>,
}

/// Lifecycle options of a child.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Control {
    /// In `onCreate`: if `true`, the entry is one of `onReconcile`. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<bool>,
    /// Conditions that must all hold for the object to be created and kept.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold for the object to be created and kept. If `when` is also set, both apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// Creates one object for each element of a list or map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// Specifies whether the object is deleted or kept when `when` and `or` no longer hold, or when its element of `forEach` is
    /// removed. Default: `delete` if all conditions read only the custom resource's metadata or spec, else `keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_false: Option<OnFalse>,
    /// If `true`, takes ownership of fields that another field manager applies. Default: the entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_conflict: Option<bool>,
    /// If `true`, takes over an existing object of this name that was created by someone else. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<bool>,
    /// Specifies how to handle a change that the API server rejects because the field is immutable, such as `roleRef` of a
    /// `RoleBinding` or `clusterIP` of a Service. Default `report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_immutable: Option<OnImmutable>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<ControlLater>,
}

/// Further options of a child.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct ControlLater {
    /// The delay before the object is created.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "a delay blocks a worker; wait for a condition with `when`"))]
    sleep: Option<Span>,
}

/// A list or map; one object is created for each element. Templates of the entry read an element of a list as `.item`, the key
/// of a map's entry as `.item` and its value as `.value`, and the position, from 0, as `.index`. In entries that read
/// `.item.key` or `.item.value`, `.item` holds both parts of a map's entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForEach {
    /// Path of the list or map, such as `spec.regions`. If the path does not exist, no object is created.
    pub field: Text,
    /// A name for the element in templates, in addition to `.item`. Default `item`.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub as_: Option<String>,
}

/// The handling of a change to an immutable field of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnImmutable {
    /// The object is not changed, and the condition names the field.
    Report,
    /// The object is deleted and created again. In between it does not exist: pods stop, and addresses change. An error for a
    /// `PersistentVolumeClaim`, a `PersistentVolume` and a Namespace.
    Recreate,
    /// Like `recreate`, and also permitted for kinds whose data is lost with the object.
    RecreateAndLoseData,
}

/// The handling of a child when its `when` no longer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFalse {
    /// The object is deleted.
    Delete,
    /// The object is kept unchanged.
    Keep,
}
