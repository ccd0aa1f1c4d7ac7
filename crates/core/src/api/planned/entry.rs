//! Further fields of an operator.

use schemars::JsonSchema;

/// Further fields of an operator.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryLater {
    /// If `true`, every change is reconciled, regardless of the observed generation.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    ignore_observed_generation: Option<bool>,
    /// If `true`, all finalizers of a deleted custom resource are removed.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "only the finalizers of Orkestra are removed: each controller removes its own"))]
    remove_finalizers: Option<bool>,
    /// The operator's self-service pages.
    serve: Option<serde_json::Value>,
}

/// Further fields of a deprecation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeprecationLater {
    /// The acknowledgment of the deprecation.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "a deprecated Katalog warns and runs"))]
    accept: Option<Accept>,
}

/// The acknowledgment of the deprecation.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accept {
    /// If `true`, the Katalog runs while it is deprecated. Default `false`.
    before_eol: Option<bool>,
    /// If `true`, the Katalog runs after its end of life. Default `false`.
    eol: Option<bool>,
}
