//! `operatorBox`: what an operator does for each custom resource.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::autoscale::Autoscale;
use super::calls::ExternalCall;
use super::children::{
    ClusterRole, ClusterRoleBinding, ConfigMap, CronJob, Custom, DaemonSet, Deployment,
    HorizontalPodAutoscaler, Ingress, Job, LimitRange, Namespace, NetworkPolicy, PersistentVolume,
    PersistentVolumeClaim, Pod, PodDisruptionBudget, PriorityClass, ReplicaSet, ResourceQuota,
    Role, RoleBinding, Secret, Service, ServiceAccount, StatefulSet, StorageClass,
};
use super::cleanup::BoxRuntime;
use super::cross::Cross;
use super::duration::Span;
use super::emit::Emit;
use super::gate::GateCondition;
use super::later::{Later, Refused};
use super::observe::Observe;
use super::on_delete::OnDelete;
use super::planned::BoxLater;
use super::pre_reconcile::{PreReconcile, Requeues};
use super::queue::Queue;
use super::rules::Normalize;
use super::scalar::{Scalar, Text};
use super::status_condition::StatusConditions;

/// The reconciliation of each custom resource of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorBox {
    /// If `true`, the default, the declared blocks are the reconciler. Custom reconcilers are not supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
    /// Workers and resync period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciler: Option<Reconciler>,
    /// A list of calls that are made in every reconcile pass, before those of the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
    /// Children that are created once. A child that is deleted later is not created again, and the condition `Ready` reports
    /// it. An entry with `reconcile: true` is created again, and is kept as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_create: Option<Lifecycle>,
    /// Children that are kept as declared, and deleted when their `when` no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_reconcile: Option<Lifecycle>,
    /// Work to complete before a custom resource is deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// A list of custom resources of other operators to read. A change of one triggers a reconcile pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<Cross>,
    /// Objects and Events that trigger a reconcile pass, in addition to the custom resource, its children and the objects that
    /// templates read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe: Option<Observe>,
    /// The status of the custom resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusSpec>,
    /// Conditions that must all hold for the children of the box to be created and kept. They apply to every block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold for the children of the box to be created and kept. If `when` is also set,
    /// both apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// Conditions for a reconcile pass to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_reconcile: Option<PreReconcile>,
    /// The same as `normalize` of the entry, which is the recommended place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalize>,
    /// Scaling of workers and queue by conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<Autoscale>,
    /// A list of finalizers that are added to every custom resource, in addition to Orkestra's, which is always added. Each is
    /// removed by its own controller. `[]` also omits Orkestra's finalizer. Default: those of the Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// Tasks of the operator other than reconciling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<BoxRuntime>,
    /// Events to emit, in addition to the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emit: Option<Emit>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<BoxLater>,
}

/// Workers, resync period and queue of the operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["remote"], "call the service under `external`; templates can read the response"))]
pub struct Reconciler {
    /// The maximum number of resources that are reconciled concurrently. If not set, it grows up to 32 while resources wait.
    /// Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// The interval at which every custom resource is reconciled without a change, such as `10m`. `0s` disables it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
    /// A profile that provides the fields that are not set: a built-in one such as `conservative`, or one of
    /// `profiles.reconciler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Path of a file with further fields under `reconciler`, relative to this file. Fields set here take precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// The queue of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Reconciles a custom resource again after a delay. In a list, the first rule whose conditions hold applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue: Option<Requeues>,
}

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

/// The status of the custom resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusSpec {
    /// Path of a file with further fields under `fields`, relative to this file. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// If `false`, the automatic conditions and `observedGeneration` are not written. Default `true`. A list adds custom
    /// conditions to the automatic ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<StatusConditions>,
    /// Conditions that must all hold for the condition `Ready` to be true, in addition to its own requirements: everything is
    /// as declared, and the children are ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ready_when: Vec<GateCondition>,
    /// A list of fields to write, in order. If two have the same path, the later one applies.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<StatusField>,
}

/// One field of the custom resource's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusField {
    /// Path of the field, relative to `status`, separated by dots: `network.endpoint`.
    pub path: Text,
    /// The value, or a template for it.
    pub value: Scalar,
    /// Type of the value. If not set, it is taken from the schema of the custom resource.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<StatusType>,
    /// Conditions that must all hold. Otherwise the field keeps its current value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold. Otherwise the field keeps its current value. If `when` is also set, both
    /// apply.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// If `true`, the field is cleared when the conditions do not hold: a string becomes empty if its schema permits it, any
    /// other value is removed. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear_on_false: Option<bool>,
}

/// The type of a status field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StatusType {
    /// Text.
    String,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// `true` or `false`.
    Bool,
    /// The type that the text looks like: a number, a boolean, else text.
    Auto,
}
