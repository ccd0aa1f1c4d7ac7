//! Kinds with pods, and the lists of all kinds.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::identity::{
    ClusterRoleBinding, LimitRange, Namespace, PriorityClass, ResourceQuota, Role, RoleBinding,
};
use super::network::{HorizontalPodAutoscaler, Ingress, NetworkPolicy, PodDisruptionBudget};
use super::storage::{PersistentVolume, PersistentVolumeClaim, StorageClass};
use crate::api::autoscale::WorkloadAutoscale;
use crate::api::children::{
    Common, Env, EnvFrom, NameRef, PodSecurity, Probes, Resources, RollingUpdate, SecurityContext,
};
use crate::api::scalar::{Scalar, Text, Texts};

/// Further blocks of children.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LifecycleLater {
    /// `StatefulSets` (apps/v1).
    stateful_sets: Option<Vec<StatefulSet>>,
    /// `DaemonSets` (apps/v1).
    daemon_sets: Option<Vec<DaemonSet>>,
    /// `ReplicaSets` (apps/v1).
    replica_sets: Option<Vec<ReplicaSet>>,
    /// Pods (v1).
    pods: Option<Vec<Pod>>,
    /// Jobs (batch/v1). They are made once, whatever `reconcile` says.
    jobs: Option<Vec<Job>>,
    /// `CronJobs` (batch/v1).
    cron_jobs: Option<Vec<CronJob>>,
    /// Ingresses (networking.k8s.io/v1).
    ingresses: Option<Vec<Ingress>>,
    /// `NetworkPolicies` (networking.k8s.io/v1).
    network_policies: Option<Vec<NetworkPolicy>>,
    /// `HorizontalPodAutoscalers` (autoscaling/v2).
    hpa: Option<Vec<HorizontalPodAutoscaler>>,
    /// `PodDisruptionBudgets` (policy/v1).
    pdb: Option<Vec<PodDisruptionBudget>>,
    /// `PersistentVolumeClaims` (v1).
    persistent_volume_claims: Option<Vec<PersistentVolumeClaim>>,
    /// `PersistentVolumes` (v1).
    persistent_volumes: Option<Vec<PersistentVolume>>,
    /// `StorageClasses` (storage.k8s.io/v1).
    storage_classes: Option<Vec<StorageClass>>,
    /// Namespaces (v1).
    namespaces: Option<Vec<Namespace>>,
    /// Roles (rbac.authorization.k8s.io/v1).
    roles: Option<Vec<Role>>,
    /// `RoleBindings` (rbac.authorization.k8s.io/v1).
    role_bindings: Option<Vec<RoleBinding>>,
    /// `ClusterRoles` (rbac.authorization.k8s.io/v1).
    cluster_roles: Option<Vec<Role>>,
    /// `ClusterRoleBindings` (rbac.authorization.k8s.io/v1).
    cluster_role_bindings: Option<Vec<ClusterRoleBinding>>,
    /// `ResourceQuotas` (v1).
    resource_quotas: Option<Vec<ResourceQuota>>,
    /// `LimitRanges` (v1).
    limit_ranges: Option<Vec<LimitRange>>,
    /// `PriorityClasses` (scheduling.k8s.io/v1).
    priority_classes: Option<Vec<PriorityClass>>,
}

/// The container of every kind with pods.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PodParts {
    /// Name, metadata and handling.
    #[serde(flatten)]
    common: Common,
    /// The container's image.
    image: Text,
    /// Secrets with registry credentials.
    image_pull_secrets: Option<Vec<NameRef>>,
    /// The command, instead of the image's.
    command: Option<Texts>,
    /// Arguments of the command.
    args: Option<Texts>,
    /// Environment variables.
    env: Option<Env>,
    /// Environment variables from all keys of `ConfigMaps` and Secrets.
    env_from: Option<EnvFrom>,
    /// What the container asks for and may use.
    resources: Option<Resources>,
    /// The container's security context.
    security_context: Option<SecurityContext>,
    /// The pod's security context.
    pod_security: Option<PodSecurity>,
    /// The pod's volumes, as in a Pod.
    volumes: Option<Vec<serde_json::Value>>,
    /// Where the container sees the volumes, as in a Pod.
    volume_mounts: Option<Vec<serde_json::Value>>,
    /// Labels of the nodes that may run the pods.
    node_selector: Option<BTreeMap<String, Text>>,
    /// The service account that the pods run as.
    service_account_name: Option<Text>,
    /// The directory that the command starts in.
    working_directory: Option<Text>,
}

/// What kinds have whose pods keep running.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ServingParts {
    /// The port that the container listens on; empty or 0 is none.
    port: Option<Scalar>,
    /// The port's protocol: `TCP`, `UDP` or `SCTP`. Default `TCP`.
    protocol: Option<Text>,
    /// Startup, liveness and readiness probes.
    probes: Option<Probes>,
}

/// A `StatefulSet` with one container. Default name: `<cr>`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StatefulSet {
    #[serde(flatten)]
    pod: PodParts,
    #[serde(flatten)]
    serving: ServingParts,
    /// The image's tag, when `image` has neither tag nor digest. Default `latest`.
    tag: Option<Text>,
    /// How many pods. Default `1`.
    replicas: Option<Scalar>,
    /// How a change is rolled out; `maxSurge` has no effect.
    rolling_update: Option<RollingUpdate>,
    /// Changes the number of pods by conditions.
    autoscale: Option<WorkloadAutoscale>,
    /// The headless Service that names the pods. Default: the object's name.
    service_name: Option<Text>,
    /// Volumes of each pod's own.
    volume_claim_templates: Option<Vec<VolumeClaimTemplate>>,
}

/// A volume of each pod's own.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct VolumeClaimTemplate {
    /// The volume's name. Default `data`.
    name: Option<Text>,
    /// Its storage class. Default: the cluster's.
    storage_class: Option<Text>,
    /// How large it is, as a quantity.
    storage_size: Option<Text>,
    /// Where the container sees it.
    mount_path: Option<Text>,
}

/// A `DaemonSet` with one container. Default name: `<cr>-daemonset`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DaemonSet {
    #[serde(flatten)]
    pod: PodParts,
    #[serde(flatten)]
    serving: ServingParts,
    /// How a change is rolled out.
    rolling_update: Option<RollingUpdate>,
}

/// A `ReplicaSet` with one container. Default name: `<cr>-replicaset`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSet {
    #[serde(flatten)]
    pod: PodParts,
    #[serde(flatten)]
    serving: ServingParts,
    /// How many pods. Default `1`.
    replicas: Option<Scalar>,
    /// Kubernetes rolls nothing out here.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    rolling_update: Option<RollingUpdate>,
    /// Changes the number of pods by conditions.
    autoscale: Option<WorkloadAutoscale>,
}

/// A Pod with one container; a change makes it anew. Default name: `<cr>-pod`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pod {
    #[serde(flatten)]
    pod: PodParts,
    #[serde(flatten)]
    serving: ServingParts,
}

/// A Job with one container; it is made once. Default name: `<cr>-job`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Job {
    #[serde(flatten)]
    pod: PodParts,
    /// How often a failed pod is tried again. Default `3`.
    backoff_limit: Option<Scalar>,
}

/// A `CronJob` with one container. Default name: `<cr>-cronjob`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CronJob {
    #[serde(flatten)]
    pod: PodParts,
    /// When it runs, in five fields.
    schedule: Text,
    /// `true` starts no further run. Default `false`.
    suspend: Option<Scalar>,
    /// How late a run may start, in seconds.
    starting_deadline_seconds: Option<Scalar>,
    /// Finished runs that are kept. Default `3`.
    successful_jobs_history_limit: Option<Scalar>,
    /// Failed runs that are kept. Default `1`.
    failed_jobs_history_limit: Option<Scalar>,
    /// What a run does while the one before still runs: `allow`, `forbid` or `replace`. Default `allow`.
    concurrency_policy: Option<Text>,
    /// How often a failed pod is tried again. Default `3`.
    backoff_limit: Option<Scalar>,
}
