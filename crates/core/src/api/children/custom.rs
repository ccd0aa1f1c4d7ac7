//! `custom`: objects of any kind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Control;
use crate::api::later::Later;
use crate::api::planned::CustomLater;
use crate::api::scalar::Text;
use crate::value::Node;

/// An object of any kind, written out in full. Every text in it may be a template.
///
/// What is not named here, such as `spec`, `data` or `rules`, is the object's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    /// How the object is handled.
    #[serde(flatten)]
    pub control: Control,
    /// The object's `apiVersion`, such as `batch/v1`.
    pub api_version: Text,
    /// The object's kind.
    pub kind: Text,
    /// Name, namespace, labels and annotations.
    pub metadata: CustomMeta,
    /// Whether the kind lives in namespaces. Read from the cluster when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaced: Option<bool>,
    /// Everything else the object has, by its first key.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub body: BTreeMap<String, Node>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<CustomLater>,
}

/// Metadata of an object of any kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMeta {
    /// The object's name.
    pub name: Text,
    /// The object's namespace. Default: the custom resource's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// Labels, beside those of ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, Text>,
    /// Annotations, beside those of ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, Text>,
}
