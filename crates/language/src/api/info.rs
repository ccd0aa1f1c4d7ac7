//! `info`: descriptive metadata of a document.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::lifecycle::Deprecation;
use orkestra_object::value::Node;

/// Descriptive metadata of a document. It has no effect on operators.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    /// Author of the document.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub author: Option<Node>,
    /// Version of the document, as a semantic version. Used as the tag of the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// A description for users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// License of the document, as an SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// A list of keywords for search.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Display name of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// Written by tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Written by tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub projects: Option<Node>,
    /// The deprecation of the document and its replacement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
}
