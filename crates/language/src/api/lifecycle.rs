//! `lifecycle`: the maturity of a document, and its replacement.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::later::{Idle, Later};

/// Maturity and deprecation of a Katalog.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Idle(&["compatibility"], "versions are not compared"))]
pub struct KatalogLifecycle {
    /// The maturity: `alpha`, `beta`, `stable` or `deprecated`, which causes a warning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maturity: Option<Maturity>,
    /// The deprecation of the Katalog and its replacement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
}

/// The maturity of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Maturity {
    /// May change incompatibly at any time.
    Alpha,
    /// May still change.
    Beta,
    /// Intended for production.
    Stable,
    /// Should be replaced.
    Deprecated,
}

/// The deprecation of a document. `ork validate`, `ork inspect` and `ork pull` warn about it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deprecation {
    /// A human-readable message.
    pub message: String,
    /// The replacement: the reference of another artifact, or a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrated_to: Option<String>,
    /// Dates of the deprecation. Default: it is deprecated now, and has no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<DeprecationLater>,
}

/// Further fields of a deprecation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct DeprecationLater {
    /// The acknowledgment of the deprecation.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "a deprecated Katalog warns and runs"))]
    accept: Option<Accept>,
}

/// The acknowledgment of the deprecation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct Accept {
    /// If `true`, the Katalog runs while it is deprecated. Default `false`.
    before_eol: Option<bool>,
    /// If `true`, the Katalog runs after its end of life. Default `false`.
    eol: Option<bool>,
}

/// The dates of a deprecation, as `YYYY-MM-DD`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Timeline {
    /// The first day of the deprecation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The end-of-life date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}
