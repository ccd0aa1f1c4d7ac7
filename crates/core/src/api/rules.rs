//! `normalize`, `mutation` and `validation`: what is made of a custom resource, and what must be so, before anything else.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::ExternalCall;
use super::gate::{GateCondition, Gates, ValueType};
use super::scalar::{Scalar, Text};

/// Rules that a Motif adds to the operator that imports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Admission {
    /// Rules that resources must keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Rules that complete resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
}

/// Rules that resources must keep. They are checked in every pass, after `normalize` and `mutation`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Validation {
    /// The rules; all that are not kept are told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ValidationRule>,
    /// File with more rules under `rules`, relative to this one. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Calls before the rules, which see the answers; so does all that comes after.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// What must be so, as a condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationRule {
    /// What the rule is called where it is told that it is not kept. Default: its `field`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What must be so.
    #[serde(flatten)]
    pub condition: GateCondition,
    /// The message when the rule is not kept. Default: a sentence made from the field and the operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// What happens then. Default `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RuleAction>,
    /// `true` holds for a field that is missing or empty. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// `true` refuses changes of the field once it has a value; an update that removes it is a change. It applies at admission
    /// only, and may stand beside other operators or alone. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    /// When the rule applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<Fires>,
    /// What must hold for the rule to count.
    #[serde(flatten)]
    pub gates: Gates,
}

/// What happens when a rule is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuleAction {
    /// Nothing is made or changed for the resource, and its status says why.
    Deny,
    /// The status and an event say so; the work goes on.
    Warn,
}

/// Rules that complete resources: children, conditions and the status see the completed one, and the stored one stays as it
/// is. They come before `validation`, in every pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Mutation {
    /// Whether they come before `validation` in a pass; they always do. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutate_first: Option<bool>,
    /// The rules, in order; each sees what those before it did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<MutationRule>,
    /// File with more rules under `rules`, relative to this one. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// Calls before the rules, which see the answers; so does all that comes after. Rules that read answers are asked after
    /// the gates of `preReconcile`, which see nothing of what they complete.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// A field that is set; `default` or `override` is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationRule {
    /// What the rule is called, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path that is set, in `spec`, `metadata.labels` or `metadata.annotations`. Maps on its way are made; items of
    /// lists must be there.
    pub field: Text,
    /// The value when the field is missing or empty text. `0` and `false` are values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Scalar>,
    /// The value, always.
    #[serde(rename = "override", default, skip_serializing_if = "Option::is_none")]
    pub override_: Option<Scalar>,
    /// What the value becomes. Default: what the schema asks for, else what is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<ValueType>,
    /// When the rule acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<Fires>,
    /// What must hold for the rule to act.
    #[serde(flatten)]
    pub gates: Gates,
}

/// When a rule or a call of the admission acts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Fires {
    /// Whether it applies when a custom resource is written. `false` is in passes only. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<bool>,
    /// Whether it applies in passes. `false` is at admission only: a call is not made in passes then, and counts as left out.
    /// Default `true`; a rule that reads `.old` or `.operation` never applies in passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<bool>,
}

/// Values of the spec, brought to one form before anything is created. The resource itself is patched, except for fields that
/// `kubectl apply` or another field manager declares and for resources that a `GitOps` tool manages: those are normalized in
/// memory. The condition `Normalized` reports which.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Normalize {
    /// Templates by path in the spec, with dots. All see the resource as it was written.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spec: BTreeMap<String, Text>,
    /// `false` leaves the resource as it was written. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
    /// `true` gives all later templates the changes as `._normalizeChanges`: a list of `field`, `from` and `to`. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<bool>,
    /// What a value becomes, by its path. Default: what the schema of the resource asks for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, NormalizeType>,
}

/// What a normalized value becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NormalizeType {
    /// A whole number.
    Int,
    /// A whole number.
    Integer,
    /// A number.
    Float,
    /// A number.
    Number,
    /// `true` or `false`.
    Bool,
    /// `true` or `false`.
    Boolean,
    /// Text.
    String,
}
