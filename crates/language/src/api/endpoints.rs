//! `endpoints`: the pages of the HTTP API that an operator has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The pages of the HTTP API for an operator. The list of all operators always includes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoints {
    /// If `false`, no page of the operator or of its resources is served. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// If `true`, the health page of the operator is served. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<bool>,
    /// If `true`, the information page of the operator is served. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<bool>,
}
