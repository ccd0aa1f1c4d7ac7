//! Rules for custom resources, and conversion between versions.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::calls::Fires;
use crate::api::calls::ExternalCall;
use crate::api::gate::{GateCondition, Gates, ValueType};
use crate::api::scalar::{Scalar, Text};

/// Rules that a Motif adds to the operator that imports it.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AdmissionLater {
    /// Rules for custom resources of the importing operator.
    admission: Option<Admission>,
}

/// Rules for custom resources.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Admission {
    /// Rules that resources must keep.
    validation: Option<Validation>,
    /// Rules that complete resources.
    mutation: Option<Mutation>,
}

/// Rules that resources must keep, at admission and in every pass.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Validation {
    /// The rules, in order.
    rules: Option<Vec<ValidationRule>>,
    /// File with more rules under `rules`, relative to this one. They come first.
    include: Option<String>,
    /// Calls before the rules.
    external: Option<Vec<ExternalCall>>,
}

/// What must be so, as a condition.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ValidationRule {
    /// What the rule is called.
    name: Option<String>,
    #[serde(flatten)]
    condition: GateCondition,
    /// What the user is told when it is not so.
    message: Text,
    /// What happens then. Default `deny`.
    action: Option<RuleAction>,
    /// `true` holds for a field that is missing. Default `false`.
    optional: Option<bool>,
    #[serde(flatten)]
    gates: Gates,
}

/// What happens when a rule is not kept.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum RuleAction {
    /// The resource is refused.
    Deny,
    /// The user is warned.
    Warn,
}

/// Rules that complete resources, at admission and in every pass.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Mutation {
    /// Whether they come before `validation` in a pass; they always do. Default `false`.
    mutate_first: Option<bool>,
    /// The rules, in order.
    rules: Option<Vec<MutationRule>>,
    /// File with more rules under `rules`, relative to this one. They come first.
    include: Option<String>,
    /// Calls before the rules.
    external: Option<Vec<ExternalCall>>,
}

/// A field that is set; `default` or `override` is given.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MutationRule {
    /// What the rule is called.
    name: Option<String>,
    /// The path that is set.
    field: Text,
    /// The value when the field is missing or empty.
    default: Option<Scalar>,
    /// The value, always.
    #[serde(rename = "override")]
    override_: Option<Scalar>,
    /// What the value becomes. Default: what the schema asks for, else `string`.
    value_type: Option<ValueType>,
    /// When the rule acts.
    fires: Option<Fires>,
    #[serde(flatten)]
    gates: Gates,
}

/// Values of the spec, brought to one form.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Normalize {
    /// Templates by path in the spec, with dots. All see the resource as it was written.
    spec: Option<BTreeMap<String, Text>>,
    /// `false` leaves the resource as it was written. Default `true`.
    persist: Option<bool>,
}

/// How resources are brought from one version to another.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Conversion {
    /// The version that is stored.
    storage_version: Option<String>,
    /// The ways between versions; one for each direction.
    paths: Option<Vec<ConversionPath>>,
    /// `true` writes the webhook into the definition, and keeps it there. Default `false`.
    #[serde(rename = "updateCRD")]
    update_crd: Option<bool>,
    /// `true` says that the ways are declared at another entry of the same kind. Default `false`.
    participant: Option<bool>,
}

/// The way from one version to another.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionPath {
    /// The version that a resource has.
    from: String,
    /// The version that it gets.
    to: String,
    /// Fields of the spec that change, as templates over the resource. Others stay.
    spec: BTreeMap<String, serde_json::Value>,
}
