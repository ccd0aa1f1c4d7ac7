//! What every child entry has.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::gate::GateCondition;
use crate::api::later::Later;
use crate::api::planned::ControlLater;
use crate::api::scalar::Text;
use crate::value::Node;

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
    /// What the object has beside or instead of what the other fields make: as in its manifest, merged into it. `null`
    /// takes a field away; lists are merged by the keys that Kubernetes merges them by, such as the `name` of containers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub patch: BTreeMap<String, Node>,
}

/// Name and metadata of a child.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    /// The object's name. The default carries the custom resource's name and the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// The object's namespace. Default: the custom resource's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// Labels, beside those of ours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Text>,
    /// Annotations, beside those of ours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Text>,
}

/// How a child is handled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Control {
    /// In `onCreate`: `true` keeps the object as declared and makes it anew when it is gone. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<bool>,
    /// All must hold for the object to be wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold for the object to be wanted. Beside `when` both count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// Makes an object for each element of a list or map.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub for_each: Option<ForEach>,
    /// What happens to the object when `when` and `or` no longer hold, or its element of `forEach` is
    /// gone. Default: `delete` when all conditions ask for the custom resource's metadata or spec, else
    /// `keep`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_false: Option<OnFalse>,
    /// `true` takes fields that another manager applies. Default: the entry's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub force_conflict: Option<bool>,
    /// `true` takes over an object of this name that somebody else made. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adopt: Option<bool>,
    /// What happens when the object exists and the API server refuses a change because the field is immutable, such as
    /// `roleRef` of a `RoleBinding` or `clusterIP` of a Service. Default `report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_immutable: Option<OnImmutable>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<ControlLater>,
}

/// A list or map with an object for each element. Templates of the entry read an element of a list as `.item`, the key of a
/// map's entry as `.item` and its value as `.value`, and the position, from 0, as `.index`. Entries that read `.item.key` or
/// `.item.value` get both parts of a map's entry there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ForEach {
    /// Path of the list or map, such as `spec.regions`. Where there is none, no object is made.
    pub field: Text,
    /// What templates call the element, beside `.item`. Default `item`.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub as_: Option<String>,
}

/// What happens to a child of which an immutable field is to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnImmutable {
    /// It stays as it is, and the condition names the field.
    Report,
    /// It is deleted and created again. Until it is, there is none: pods stop, and addresses change. An error for a
    /// `PersistentVolumeClaim`, a `PersistentVolume` and a Namespace.
    Recreate,
    /// The same for kinds whose data is lost with the object.
    RecreateAndLoseData,
}

/// What happens to a child when its `when` no longer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnFalse {
    /// It is deleted.
    Delete,
    /// It stays as it is.
    Keep,
}
