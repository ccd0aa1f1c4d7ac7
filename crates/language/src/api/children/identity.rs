//! Namespaces, permissions, quotas, priorities.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::config::Copies;
use crate::api::or_template::OrTemplate;
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
    /// A list of finalizers of the namespace. Each must be removed by its controller before the namespace is deleted.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub finalizers: OrTemplate<Vec<Text>>,
}

/// A Role. Default name: `<cr>-role`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Name, metadata and handling. Default name: `<cr>-role`.
    #[serde(flatten)]
    pub common: Common,
    /// A list of rules. At least one is required.
    pub rules: Vec<PolicyRule>,
}

/// A `ClusterRole`. Default name: `<cr>-cluster-role`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRole {
    /// Name, metadata and handling. Default name: `<cr>-cluster-role`.
    #[serde(flatten)]
    pub common: Common,
    /// A list of rules. At least one is required.
    pub rules: Vec<PolicyRule>,
}

/// A rule of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRule {
    /// A list of API groups. The core group is `""`. Default `[""]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_groups: Option<Vec<Text>>,
    /// A list of resources, by plural name.
    pub resources: Vec<Text>,
    /// A list of permitted verbs.
    pub verbs: Vec<Text>,
    /// A list of object names that the rule is limited to. Default: all.
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
    /// The role that is granted. Immutable in Kubernetes.
    pub role_ref: RoleRef,
    /// A list of subjects that the role is granted to. At least one is required.
    pub subjects: OrTemplate<Vec<Subject>>,
}

/// A role by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleRef {
    /// Name of the role.
    pub name: Text,
    /// Kind of the role: `Role` or `ClusterRole`. Default `Role`.
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
    /// The role that is granted. Immutable in Kubernetes.
    pub role_ref: ClusterRoleRef,
    /// A list of subjects that the role is granted to. At least one is required.
    pub subjects: OrTemplate<Vec<Subject>>,
}

/// A cluster role by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRoleRef {
    /// Name of the role.
    pub name: Text,
    /// Kind of the role. Must be `ClusterRole`. Default `ClusterRole`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
}

/// A subject that a role is granted to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// Kind of the subject: `ServiceAccount`, `User` or `Group`. Default `ServiceAccount`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
    /// The name.
    pub name: Text,
    /// Namespace of a service account. Default: the custom resource's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Text>,
}

/// A `ResourceQuota`. The name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceQuota {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows.
    #[serde(flatten)]
    pub quota: Quota,
    /// A profile that provides `hard`: a built-in one such as `small`, or one of `profiles.resourceQuotas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Name of a `ResourceQuota` whose `spec` is copied, instead of the rules here. `patch` changes the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_resource_quota: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// Limits on the total use of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quota {
    /// Hard limits, by resource: `pods`, `requests.cpu`, `limits.memory`.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub hard: OrTemplate<BTreeMap<String, Text>>,
}

/// A `LimitRange`. The name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LimitRange {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows.
    #[serde(flatten)]
    pub limits: Limits,
    /// A profile that provides `limits`: one of `profiles.limitRanges`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Name of a `LimitRange` whose `spec` is copied, instead of the rules here. `patch` changes the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_limit_range: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// Limits on each object of a namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// A list of limits, one for each type of object.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub limits: OrTemplate<Vec<Limit>>,
}

/// Limits on each object of a type, as quantities by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// Type of the objects: `Container`, `Pod` or `PersistentVolumeClaim`.
    #[serde(rename = "type")]
    pub type_: Text,
    /// Limits of containers that declare none.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub default: OrTemplate<BTreeMap<String, Text>>,
    /// Requests of containers that declare none.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub default_request: OrTemplate<BTreeMap<String, Text>>,
    /// The maximum, by resource.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub max: OrTemplate<BTreeMap<String, Text>>,
    /// The minimum, by resource.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub min: OrTemplate<BTreeMap<String, Text>>,
}

/// A `PriorityClass`. The name is required.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriorityClass {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// The priority; pods with a higher value are scheduled first. Immutable in Kubernetes.
    pub value: Scalar,
    /// If `true`, this class applies to pods without a priority class. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_default: Option<Scalar>,
    /// Specifies whether pods of this class preempt pods of lower priority: `PreemptLowerPriority` or `Never`. Default
    /// `PreemptLowerPriority`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preemption_policy: Option<Text>,
    /// A description for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Text>,
}
