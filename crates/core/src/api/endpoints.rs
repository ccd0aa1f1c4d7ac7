//! `endpoints`: which pages of the HTTP API an operator has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which pages an operator has. The list of all operators always names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoints {
    /// Any at all; `false` also hides the pages of its resources. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The page of its health. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<bool>,
    /// The page that says what it is. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<bool>,
}
