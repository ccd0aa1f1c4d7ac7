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

/// What an operator does for each custom resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorBox {
    /// `true`, the default: the declared blocks are the reconciler. Reconcilers of your own are not
    /// supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<bool>,
    /// Workers and resync period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconciler: Option<Reconciler>,
    /// Calls that are made in every pass, before those of the blocks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub external: Vec<ExternalCall>,
    /// Children that are created once: one that is deleted later is not created again, and `Ready` says so. An entry
    /// with `reconcile: true` is created again, and also kept
    /// as declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_create: Option<Lifecycle>,
    /// Children that are kept as declared, and removed when their `when` no longer holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_reconcile: Option<Lifecycle>,
    /// What is done before a custom resource goes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_delete: Option<OnDelete>,
    /// Custom resources of other operators that are read. A change of one leads to a pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<Cross>,
    /// Objects and Events that lead to a pass, beside the custom resource, its children and what templates read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observe: Option<Observe>,
    /// What is written to the custom resource's status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusSpec>,
    /// All must hold for the children of the box to be wanted: what is false closes every block.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold for the children of the box to be wanted. Beside `when` both count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// What must hold before a pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pre_reconcile: Option<PreReconcile>,
    /// As `normalize` beside the box, which is its usual place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalize: Option<Normalize>,
    /// Changes workers and queue by conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<Autoscale>,
    /// Finalizers that every resource gets beside ours, which it always has; who they belong to takes
    /// them off again. `[]` keeps ours off too. Default: those of the Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizers: Option<Vec<String>>,
    /// What the operator does beside reconciling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<BoxRuntime>,
    /// What is reported beside the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emit: Option<Emit>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<BoxLater>,
}

/// How the operator works through its queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(&["remote"], "call the service under `external`, and let templates read its answer"))]
pub struct Reconciler {
    /// How many resources are reconciled at a time; left out, it grows up to 32 while resources wait. Default `3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// How often every resource is reconciled without a change, such as `10m`; `0s` is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
    /// A profile for the fields that are left out: a built-in one such as `conservative`, or one of
    /// `profiles.reconciler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// File with more fields under `reconciler`, relative to this one. What is written here wins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// Reconciles a resource again after a while. Of a list the first rule whose conditions hold counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue: Option<Requeues>,
}

/// Children by kind. Within a kind the order of declaration counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(transform = Refused(NO_SHORTHAND, "write the object out under `custom`"))]
pub struct Lifecycle {
    /// All must hold, or the block counts as if none of its entries were wanted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold, or the block counts as if none of its entries were wanted. Beside `when` both count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// Calls that are made before any child of the block, in order; each sees the answers of those before it.
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
    /// Jobs (batch/v1). They are made once, whatever `reconcile` says.
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

/// What is written to the custom resource's status.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusSpec {
    /// File with more fields under `fields`, relative to this one. They come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// `false` leaves out the automatic conditions and `observedGeneration`. Default `true`. A list adds conditions of your
    /// own to them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<StatusConditions>,
    /// All must hold for the condition `Ready` to be true, beside what it asks anyway: that everything is as declared, and
    /// that the children are ready.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ready_when: Vec<GateCondition>,
    /// Fields to write, in order; of two for one path the later wins.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<StatusField>,
}

/// One field of the custom resource's status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusField {
    /// Where the value goes, relative to `status`, with dots: `network.endpoint`.
    pub path: Text,
    /// The value, or a template for it.
    pub value: Scalar,
    /// What the value becomes. Left out, the schema of the custom resource decides.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<StatusType>,
    /// All must hold, or the field keeps the value it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold, or the field keeps the value it has. Beside `when` both count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
    /// `true` empties the field when the conditions don't hold: a text becomes empty where its schema lets it, anything else
    /// goes. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clear_on_false: Option<bool>,
}

/// What the value of a status field becomes.
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
    /// What the text looks like: a number, a boolean, else text.
    Auto,
}
