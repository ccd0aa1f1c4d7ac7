//! The children of a block, a list for each kind.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::{ConfigMap, Secret};
use super::custom::Custom;
use super::identity::{
    ClusterRole, ClusterRoleBinding, LimitRange, Namespace, PriorityClass, ResourceQuota, Role,
    RoleBinding, ServiceAccount,
};
use super::network::{
    HorizontalPodAutoscaler, Ingress, NetworkPolicy, PodDisruptionBudget, Service,
};
use super::storage::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use super::workload::{CronJob, DaemonSet, Deployment, Job, Pod, ReplicaSet, StatefulSet};
use crate::api::calls::ExternalCall;
use crate::api::gate::GateCondition;
use crate::api::later::Refused;

/// Children by kind. Within a kind, they are processed in the order of declaration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(NO_SHORTHAND, "declare the object under `custom`"))]
pub struct Lifecycle {
    /// Conditions that must all hold. Otherwise the block is treated as if the conditions of none of its entries held.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold. Otherwise the block is treated as if the conditions of none of its entries
    /// held. If `when` is also set, both apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// A list of calls that are made in order before any child of the block. Each can read the responses of the previous ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
    /// Deployments (apps/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deployments: Vec<Deployment>,
    /// `StatefulSets` (apps/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stateful_sets: Vec<StatefulSet>,
    /// `DaemonSets` (apps/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub daemon_sets: Vec<DaemonSet>,
    /// `ReplicaSets` (apps/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub replica_sets: Vec<ReplicaSet>,
    /// Pods (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<Pod>,
    /// Jobs (batch/v1). They are created once, regardless of `reconcile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// `CronJobs` (batch/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cron_jobs: Vec<CronJob>,
    /// Services (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Ingresses (networking.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ingresses: Vec<Ingress>,
    /// `NetworkPolicies` (networking.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_policies: Vec<NetworkPolicy>,
    /// `ConfigMaps` (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<ConfigMap>,
    /// Secrets (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<Secret>,
    /// `ServiceAccounts` (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub service_accounts: Vec<ServiceAccount>,
    /// Roles (rbac.authorization.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// `RoleBindings` (rbac.authorization.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub role_bindings: Vec<RoleBinding>,
    /// `ClusterRoles` (rbac.authorization.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_roles: Vec<ClusterRole>,
    /// `ClusterRoleBindings` (rbac.authorization.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cluster_role_bindings: Vec<ClusterRoleBinding>,
    /// `HorizontalPodAutoscalers` (autoscaling/v2).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hpa: Vec<HorizontalPodAutoscaler>,
    /// `PodDisruptionBudgets` (policy/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pdb: Vec<PodDisruptionBudget>,
    /// `PersistentVolumeClaims` (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub persistent_volume_claims: Vec<PersistentVolumeClaim>,
    /// `PersistentVolumes` (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub persistent_volumes: Vec<PersistentVolume>,
    /// `StorageClasses` (storage.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage_classes: Vec<StorageClass>,
    /// Namespaces (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<Namespace>,
    /// `ResourceQuotas` (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_quotas: Vec<ResourceQuota>,
    /// `LimitRanges` (v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limit_ranges: Vec<LimitRange>,
    /// `PriorityClasses` (scheduling.k8s.io/v1).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub priority_classes: Vec<PriorityClass>,
    /// Objects of any kind, written out in full.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub custom: Vec<Custom>,
}

/// Kinds that the language names and that have no short form.
const NO_SHORTHAND: &[&str] = &[
    "podSecurityPolicies",
    "podTemplates",
    "priorityLevelConfigurations",
    "runtimeClasses",
    "serviceMonitors",
    "storageBackups",
    "storageLocations",
    "storagePools",
    "storageSnapshots",
    "storageVolumes",
];
