//! `lifecycle`: how mature a document is, and what replaces it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::later::{Idle, Later};
use super::planned::DeprecationLater;

/// How mature a Katalog is, and whether another one replaces it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["compatibility"], "versions are not compared"))]
pub struct KatalogLifecycle {
    /// `alpha`, `beta`, `stable` or `deprecated`, which warns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maturity: Option<Maturity>,
    /// Why the Katalog is deprecated, and what replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
}

/// How mature a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Maturity {
    /// It may change in any way.
    Alpha,
    /// It may still change.
    Beta,
    /// It is meant for production.
    Stable,
    /// It should be replaced.
    Deprecated,
}

/// The deprecation of a document. `ork validate`, `ork inspect` and `ork pull` warn of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deprecation {
    /// Why, for people.
    pub message: String,
    /// What to use instead: the reference of another artifact, or a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrated_to: Option<String>,
    /// When. Default: it is deprecated now, and has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<DeprecationLater>,
}

/// When a document is deprecated; dates as `YYYY-MM-DD`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeline {
    /// The first day on which it is deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The day on which it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}
