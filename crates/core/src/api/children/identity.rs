//! Namespaces, rights, quotas, priorities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::config::Copies;
use crate::api::profiles::{Limits, Quota};
use crate::api::scalar::{Scalar, Text};

/// A `ServiceAccount`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceAccount {
    /// Name, metadata and handling. Default name: `<cr>-sa`.
    #[serde(flatten)]
    pub common: Common,
}

/// A Namespace. Default name: `<cr>-ns`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Namespace {
    /// Name, metadata and handling. Default name: `<cr>-ns`.
    #[serde(flatten)]
    pub common: Common,
    /// Finalizers of the namespace: each is for somebody to take off before the namespace goes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<Text>,
}

/// A Role. Default name: `<cr>-role`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Name, metadata and handling. Default name: `<cr>-role`.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows; at least one.
    pub rules: Vec<PolicyRule>,
}

/// A `ClusterRole`. Default name: `<cr>-cluster-role`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRole {
    /// Name, metadata and handling. Default name: `<cr>-cluster-role`.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows; at least one.
    pub rules: Vec<PolicyRule>,
}

/// What a role allows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// API groups; the core group is `""`. Default `[""]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_groups: Option<Vec<Text>>,
    /// Resources, in the plural.
    pub resources: Vec<Text>,
    /// What may be done.
    pub verbs: Vec<Text>,
    /// Names of objects. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<Text>,
}

/// A `RoleBinding`. Default name: `<cr>-rolebinding`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleBinding {
    /// Name, metadata and handling. Default name: `<cr>-rolebinding`.
    #[serde(flatten)]
    pub common: Common,
    /// The role that is given. Kubernetes does not change it later.
    pub role_ref: RoleRef,
    /// Who gets it; at least one.
    pub subjects: Vec<Subject>,
}

/// A role by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleRef {
    /// The role's name.
    pub name: Text,
    /// `Role` or `ClusterRole`. Default `Role`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
}

/// A `ClusterRoleBinding`. Default name: `<cr>-crb`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRoleBinding {
    /// Name, metadata and handling. Default name: `<cr>-crb`.
    #[serde(flatten)]
    pub common: Common,
    /// The role that is given. Kubernetes does not change it later.
    pub role_ref: ClusterRoleRef,
    /// Who gets it; at least one.
    pub subjects: Vec<Subject>,
}

/// A cluster role by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRoleRef {
    /// The role's name.
    pub name: Text,
    /// `ClusterRole`, the only word. Default `ClusterRole`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
}

/// Who gets a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// `ServiceAccount`, `User` or `Group`. Default `ServiceAccount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
    /// The name.
    pub name: Text,
    /// A service account's namespace. Default: the custom resource's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
}

/// A `ResourceQuota`. Its name is needed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuota {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows.
    #[serde(flatten)]
    pub quota: Quota,
    /// A profile that stands for `hard`: a built-in one such as `small`, or one of `profiles.resourceQuotas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// A quota to copy, by name, instead of the rules here: its whole `spec`. `patch` changes the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_resource_quota: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// A `LimitRange`. Its name is needed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitRange {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows.
    #[serde(flatten)]
    pub limits: Limits,
    /// A profile that stands for `limits`: one of `profiles.limitRanges`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// A limit range to copy, by name, instead of the rules here: its whole `spec`. `patch` changes the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_limit_range: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// A `PriorityClass`. Its name is needed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorityClass {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// The priority; more is sooner. Kubernetes does not change it later.
    pub value: Scalar,
    /// `true` makes it that of pods without a class. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_default: Option<Scalar>,
    /// Whether its pods drive out others: `PreemptLowerPriority` or `Never`. Default `PreemptLowerPriority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<Text>,
    /// What it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text>,
}
