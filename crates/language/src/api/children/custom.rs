//! `custom`: objects of any kind.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Control;
use crate::api::later::Later;
use crate::api::or_template::OrTemplate;
use crate::api::scalar::Text;
use orkestra_object::value::Node;

/// An object of any kind, written out in full. Every string in it may be a template.
///
/// Fields that are not listed here, such as `spec`, `data` or `rules`, are copied to the object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Custom {
    /// How the object is handled.
    #[serde(flatten)]
    pub control: Control,
    /// `apiVersion` of the object, such as `batch/v1`.
    pub api_version: Text,
    /// Kind of the object.
    pub kind: Text,
    /// Name, namespace, labels and annotations.
    pub metadata: CustomMeta,
    /// If `true`, the kind is namespaced. If not set, this is read from the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaced: Option<bool>,
    /// All other fields of the object, by top-level key.
    #[serde(flatten)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub body: BTreeMap<String, Node>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<CustomLater>,
}

/// Further fields of objects of any kind.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct CustomLater {
    /// The initial status of the object.
    status: Option<serde_json::Value>,
    /// If `true`, the kind has a status subresource.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "this is read from the definition of the kind"))]
    has_status: Option<bool>,
}

/// Metadata of an object of any kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMeta {
    /// Name of the object.
    pub name: Text,
    /// Namespace of the object. Default: the custom resource's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
    /// Labels of the object, in addition to those that Orkestra sets.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub labels: OrTemplate<BTreeMap<String, Text>>,
    /// Annotations of the object, in addition to those that Orkestra sets.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub annotations: OrTemplate<BTreeMap<String, Text>>,
}
