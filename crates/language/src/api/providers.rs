//! `providers`: providers of external resources, and their resources. The types exist only for their schemas.
#![expect(dead_code, reason = "only the schemas are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::scalar::Text;

/// A provider of external resources.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Provider {
    /// Name of the provider, such as `aws`.
    name: String,
    /// If `true`, Orkestra does not start without the provider. Default `false`.
    required: Option<bool>,
    /// Credentials; `$VAR` is read from the environment.
    auth: Option<ProviderAuth>,
    /// The expected version.
    version: Option<String>,
    /// OCI reference of the plugin.
    library: Option<String>,
}

/// Credentials of a provider.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderAuth {
    /// The connection URI of `mongodb`.
    mongo_uri: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Text>,
}

/// An external resource: its type, and the fields of the type.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderResource {
    /// Alternative form: the action.
    action: Option<Text>,
    /// Alternative form: the input of the action.
    input: Option<BTreeMap<String, serde_json::Value>>,
    #[serde(flatten)]
    types: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
}
