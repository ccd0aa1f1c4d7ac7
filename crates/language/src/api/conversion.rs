//! `conversion`: converts custom resources from one version of their kind to another.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use orkestra_object::value::Node;

/// The conversion of custom resources from one version of their kind to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Conversion {
    /// The version that is stored: versions without a direct path are converted through it. Required with `paths`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_version: Option<String>,
    /// The paths between versions, one for each direction.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<ConversionPath>,
    /// If `true`, the gateway writes the webhook and its certificate into the custom resource definition, and maintains them.
    /// Default `true`.
    #[serde(rename = "updateCRD", skip_serializing_if = "Option::is_none")]
    pub update_crd: Option<bool>,
    /// If `true`, the paths are declared at another entry of the same kind. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub participant: Option<bool>,
    /// If `true`, fields that the target version does not have are stored in an annotation, and restored by the reverse
    /// conversion. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preserve: Option<bool>,
}

/// The path from one version to another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversionPath {
    /// The version of the source.
    pub from: String,
    /// The version of the result.
    pub to: String,
    /// Fields of the result's spec that differ from the source's, as templates over the source; a key may be a path with dots.
    /// Other fields are copied if the target version has them.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub spec: BTreeMap<String, Node>,
}
