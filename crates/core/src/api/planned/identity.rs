//! Namespaces, rights, quotas.

use schemars::JsonSchema;

use crate::api::children::Common;
use crate::api::children::Copies;
use crate::api::profiles::{Limits, Quota};
use crate::api::scalar::{Scalar, Text};

/// A Namespace. Default name: `<cr>-ns`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Namespace {
    #[serde(flatten)]
    common: Common,
    /// Finalizers of the namespace.
    finalizers: Option<Vec<Text>>,
}

/// A Role or `ClusterRole`. Default name: `<cr>-role` or `<cr>-cluster-role`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Role {
    #[serde(flatten)]
    common: Common,
    /// What it allows; at least one.
    rules: Vec<PolicyRule>,
}

/// What a role allows.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyRule {
    /// API groups; the core group is `""`.
    api_groups: Option<Vec<Text>>,
    /// Resources, in the plural.
    resources: Option<Vec<Text>>,
    /// What may be done.
    verbs: Vec<Text>,
    /// Names of objects. Default: all.
    resource_names: Option<Vec<Text>>,
}

/// A `RoleBinding`. Default name: `<cr>-rolebinding`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleBinding {
    #[serde(flatten)]
    common: Common,
    /// The role that is given.
    role_ref: RoleRef,
    /// Who gets it; at least one.
    subjects: Vec<Subject>,
}

/// A role by name.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RoleRef {
    /// The role's name.
    name: Text,
    /// `Role` or `ClusterRole`. Default `Role`.
    kind: Option<Text>,
}

/// A `ClusterRoleBinding`. Default name: `<cr>-crb`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterRoleBinding {
    #[serde(flatten)]
    common: Common,
    /// The role that is given.
    role_ref: ClusterRoleRef,
    /// Who gets it; at least one.
    subjects: Vec<Subject>,
}

/// A cluster role by name.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterRoleRef {
    /// The role's name.
    name: Text,
    /// Default `ClusterRole`.
    kind: Option<Text>,
}

/// Who gets a role.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subject {
    /// `ServiceAccount`, `User` or `Group`. Default `ServiceAccount`.
    kind: Option<Text>,
    /// The name.
    name: Text,
    /// A service account's namespace. Default: the custom resource's.
    namespace: Option<Text>,
}

/// A `ResourceQuota`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceQuota {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    quota: Quota,
    /// A profile: a built-in one such as `small`, or one of `profiles.resourceQuotas`. `hard` wins.
    profile: Option<Text>,
    /// A quota to copy, by name.
    from_resource_quota: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

/// A `LimitRange`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LimitRange {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    limits: Limits,
    /// A profile: one of `profiles.limitRanges`.
    profile: Option<Text>,
    /// A limit range to copy, by name.
    from_limit_range: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

/// A `PriorityClass`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PriorityClass {
    #[serde(flatten)]
    common: Common,
    /// The priority; more is sooner.
    value: Scalar,
    /// `true` makes it that of pods without a class. Default `false`.
    global_default: Option<Scalar>,
    /// Whether its pods drive out others: `PreemptLowerPriority` or `Never`. Default `PreemptLowerPriority`.
    preemption_policy: Option<Text>,
    /// What it is for.
    description: Option<Text>,
}
