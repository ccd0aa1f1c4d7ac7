//! `normalize`, `mutation` and `validation`: rules that change and check a custom resource before every other step of a pass.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::calls::{ExternalCall, Fires};
use super::gate::{GateCondition, Gates, ValueType};
use super::scalar::{Scalar, Text};

/// Rules that a Motif adds to the operator that imports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Admission {
    /// Rules that custom resources must satisfy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Rules that set fields of custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<Mutation>,
}

/// Rules that custom resources must satisfy. They are checked in every reconcile pass, after `normalize` and `mutation`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Validation {
    /// A list of rules. All violations are reported.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<ValidationRule>,
    /// Path of a file with further rules under `rules`, relative to this file. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// A list of calls that are made before the rules. The rules and all later templates can read the responses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// A rule that custom resources must satisfy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationRule {
    /// Name of the rule in reports of violations. Default: its `field`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The condition that must hold.
    #[serde(flatten)]
    pub condition: GateCondition,
    /// The message for a violation of the rule. Default: a sentence made from the field and the operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text>,
    /// The action for a violation. Default `deny`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<RuleAction>,
    /// If `true`, the rule holds for a field that is missing or empty. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
    /// If `true`, the field cannot be changed once it has a value; removing it is a change. Applies at admission only. May be
    /// used alone or with other operators. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub immutable: Option<bool>,
    /// Specifies whether the rule applies at admission, in reconcile passes, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<Fires>,
    /// Conditions for the rule to apply.
    #[serde(flatten)]
    pub gates: Gates,
}

/// The action for a violation of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RuleAction {
    /// No children are created or changed for the custom resource, and its status reports the reason.
    Deny,
    /// The status and an Event report the violation, and the reconcile pass continues.
    Warn,
}

/// Rules that set fields of custom resources in memory: children, conditions and the status see the result, and the stored
/// resource is not changed. They are applied before `validation`, in every reconcile pass.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Mutation {
    /// Specifies that the rules are applied before `validation`, which is always the case. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutate_first: Option<bool>,
    /// A list of rules, applied in order. Each sees the changes of the previous ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<MutationRule>,
    /// Path of a file with further rules under `rules`, relative to this file. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// A list of calls that are made before the rules. The rules and all later templates can read the responses. Rules that
    /// read responses are evaluated after the gates of `preReconcile`, which do not see the fields that those rules set.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
}

/// A rule that sets a field. One of `default` and `override` must be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MutationRule {
    /// Name of the rule, for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Path of the field to set, in `spec`, `metadata.labels` or `metadata.annotations`. Missing maps on the path are created;
    /// list items must exist.
    pub field: Text,
    /// The value to set if the field is missing or empty text. `0` and `false` count as values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Scalar>,
    /// The value to set in any case.
    #[serde(rename = "override", default, skip_serializing_if = "Option::is_none")]
    pub override_: Option<Scalar>,
    /// Type of the value. Default: what the schema asks for, else what is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_type: Option<ValueType>,
    /// Specifies whether the rule applies at admission, in reconcile passes, or both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fires: Option<Fires>,
    /// Conditions for the rule to apply.
    #[serde(flatten)]
    pub gates: Gates,
}

/// Normalization of values of the spec, before any child is created. The resource itself is patched, except for fields that
/// `kubectl apply` or another field manager declares and for resources that a `GitOps` tool manages: those are normalized in
/// memory. The condition `Normalized` reports which.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Normalize {
    /// Templates by path in the spec, with dots. All templates read the custom resource as it was written.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub spec: BTreeMap<String, Text>,
    /// If `false`, the custom resource is not patched. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persist: Option<bool>,
    /// If `true`, later templates can read the changes as `._normalizeChanges`: a list of `field`, `from` and `to`. Default
    /// `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<bool>,
    /// Type of the normalized value, by path. Default: what the schema of the resource asks for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, NormalizeType>,
}

/// The type of a normalized value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum NormalizeType {
    /// An integer.
    Int,
    /// An integer.
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
