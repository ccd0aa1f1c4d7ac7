//! Further fields of an operator.

use schemars::JsonSchema;

use super::rules::Conversion;

/// Further fields of an operator.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryLater {
    /// How resources are brought from one version to another.
    conversion: Option<Conversion>,
    /// Which webhooks the resources pass.
    webhooks: Option<EntryWebhooks>,
    /// What may not be deleted.
    deletion_protection: Option<EntryProtection>,
    /// Every change is reconciled, whatever generation was seen before.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    ignore_observed_generation: Option<bool>,
    /// Takes all finalizers off a resource that is deleted.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "only the finalizers of Orkestra are removed: each controller removes its own"))]
    remove_finalizers: Option<bool>,
    /// The operator's self-service pages.
    serve: Option<serde_json::Value>,
}

/// Which webhooks the resources pass.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryWebhooks {
    /// That of `validation`. Default: whether there are rules.
    validation: Option<bool>,
    /// That of `mutation`. Default: whether there are rules.
    mutation: Option<bool>,
    /// At which operations. Default `[CREATE, UPDATE]`.
    operations: Option<Vec<Operation>>,
}

/// An operation on a resource.
#[derive(JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

/// What may not be deleted.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct EntryProtection {
    /// Whether the definition may not. Default `true`.
    #[serde(rename = "protectCRD")]
    protect_crd: Option<bool>,
    /// Whether resources may not. Default `true`.
    #[serde(rename = "protectCRs")]
    protect_crs: Option<bool>,
    /// Whether the label that protects may not be removed. Default: that of `security.deletionProtection`.
    strict_mode: Option<bool>,
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
