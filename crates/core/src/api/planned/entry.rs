//! Further fields of an operator.

use schemars::JsonSchema;

/// Further fields of an operator.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryLater {
    /// Every change is reconciled, whatever generation was seen before.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    ignore_observed_generation: Option<bool>,
    /// Takes all finalizers off a resource that is deleted.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "only the finalizers of Orkestra are removed: each controller removes its own"))]
    remove_finalizers: Option<bool>,
    /// The operator's self-service pages.
    serve: Option<serde_json::Value>,
}

/// Further fields of what is deprecated.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeprecationLater {
    /// What a user agrees to.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "a deprecated Katalog warns and runs"))]
    accept: Option<Accept>,
}

/// What a user agrees to.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Accept {
    /// To run it while it is deprecated. Default `false`.
    before_eol: Option<bool>,
    /// To run it after its end. Default `false`.
    eol: Option<bool>,
}
