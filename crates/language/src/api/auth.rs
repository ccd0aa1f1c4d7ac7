//! `auth`: credentials that come from the environment or from a Secret.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Credentials for a source of documents. They come from the environment or from a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceAuth {
    /// The authentication scheme. Default `bearer`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<AuthType>,
    /// The environment variable that holds the token, or `user:password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// The key of a Secret that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// An authentication scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuthType {
    /// A token.
    Bearer,
    /// User and password.
    Basic,
    /// A token of GitHub.
    Github,
}

/// A key of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
    /// Namespace of the Secret. Default: the document's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The key in the object's data.
    pub key: String,
}
