//! Conversion between versions.

use std::collections::BTreeMap;

use schemars::JsonSchema;

/// How resources are brought from one version to another.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversion {
    /// The version that is stored.
    storage_version: Option<String>,
    /// The ways between versions; one for each direction.
    paths: Option<Vec<ConversionPath>>,
    /// `true` writes the webhook into the definition, and keeps it there. Default `false`.
    #[serde(rename = "updateCRD")]
    update_crd: Option<bool>,
    /// `true` says that the ways are declared at another entry of the same kind. Default `false`.
    participant: Option<bool>,
}

/// The way from one version to another.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionPath {
    /// The version that a resource has.
    from: String,
    /// The version that it gets.
    to: String,
    /// Fields of the spec that change, as templates over the resource. Others stay.
    spec: BTreeMap<String, serde_json::Value>,
}
