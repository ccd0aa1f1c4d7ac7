//! Kinds with pods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::env::{Env, EnvFrom, NameRef};
use super::pod::{PodSecurity, Probes, Resources, SecurityContext};
use crate::api::autoscale::WorkloadAutoscale;
use crate::api::later::{Later, Refused};
use crate::api::or_template::OrTemplate;
use crate::api::scalar::{Scalar, Text, Texts};
use orkestra_object::value::Node;

/// The pod of every kind with pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodParts {
    /// Image of the container.
    pub image: Text,
    /// A list of Secrets with registry credentials.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub image_pull_secrets: OrTemplate<Vec<NameRef>>,
    /// Entrypoint of the container, instead of the image's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Texts>,
    /// Arguments of the entrypoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Texts>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<OrTemplate<Env>>,
    /// Environment variables from all keys of `ConfigMaps` and Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<OrTemplate<EnvFrom>>,
    /// Compute resources of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<OrTemplate<Resources>>,
    /// The container's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<OrTemplate<SecurityContext>>,
    /// The pod's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<OrTemplate<PodSecurity>>,
    /// The pod's volumes, as in a Pod.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<Vec<serde_json::Value>>")]
    pub volumes: OrTemplate<Vec<Node>>,
    /// Volume mounts of the container, as in a Pod.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<Vec<serde_json::Value>>")]
    pub volume_mounts: OrTemplate<Vec<Node>>,
    /// Labels that a node must have to run the pods.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub node_selector: OrTemplate<BTreeMap<String, Text>>,
    /// Tolerations of taints of nodes, as in a Pod.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<Vec<serde_json::Value>>")]
    pub tolerations: OrTemplate<Vec<Node>>,
    /// Affinity to nodes and to other pods, as in a Pod.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<BTreeMap<String, serde_json::Value>>")]
    pub affinity: OrTemplate<BTreeMap<String, Node>>,
    /// Constraints on the spreading of pods over nodes and zones, as in a Pod.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<Vec<serde_json::Value>>")]
    pub topology_spread_constraints: OrTemplate<Vec<Node>>,
    /// Name of the `ServiceAccount` that the pods run as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<Text>,
    /// Working directory of the container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Text>,
    /// A list of further containers, in addition to that of `image`, as in a Pod.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<Vec<serde_json::Value>>")]
    pub containers: OrTemplate<Vec<Node>>,
    /// A list of init containers, as in a Pod. They must complete before the other containers start.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    #[schemars(with = "OrTemplate<Vec<serde_json::Value>>")]
    pub init_containers: OrTemplate<Vec<Node>>,
}

/// Port and probes of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Serving {
    /// The port that the container listens on. Empty or 0 means no port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// The port's protocol: `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// Startup, liveness and readiness probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
}

/// The rolling update strategy of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// A profile that provides the other fields: a built-in one such as `safe`, or one of `profiles.rollingUpdate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// The maximum number of pods above the desired number, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Scalar>,
    /// The maximum number of pods that can be unavailable during the update, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Scalar>,
}

/// Restarts of pods when their configuration changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rolling {
    /// If `true`, the pods are restarted when a Secret or a `ConfigMap` that they use for variables, files or credentials
    /// changes. For a `CronJob`, this applies to runs that start afterwards. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roll_on_change: Option<bool>,
}

/// A Deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// Name, metadata and handling. Default name: `<cr>-deployment`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// Port and probes.
    #[serde(flatten)]
    pub serving: Serving,
    /// The desired number of pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// The rolling update strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<OrTemplate<RollingUpdate>>,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
    /// Scaling of the number of pods by conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<WorkloadAutoscale>,
}

/// A `StatefulSet`. Default name: `<cr>`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatefulSet {
    /// Name, metadata and handling. Default name: `<cr>`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// Port and probes.
    #[serde(flatten)]
    pub serving: Serving,
    /// Tag of the image. Used if `image` has neither tag nor digest. Default `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Text>,
    /// The desired number of pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// The rolling update strategy. `maxSurge` has no effect on a `StatefulSet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<OrTemplate<RollingUpdate>>,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
    /// Name of the headless Service that governs the pods' network identity. Default: the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<Text>,
    /// A list of volume claims that are created for each pod. Immutable in Kubernetes.
    #[serde(default, skip_serializing_if = "OrTemplate::is_absent")]
    pub volume_claim_templates: OrTemplate<Vec<VolumeClaimTemplate>>,
    /// Scaling of the number of pods by conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<WorkloadAutoscale>,
}

/// A volume claim that is created for each pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaimTemplate {
    /// Name of the volume. Default `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Name of the storage class. Default: the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<Text>,
    /// Size of the volume, as a quantity.
    pub storage_size: Text,
    /// The mount path in the container. Default: where `volumeMounts` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_path: Option<Text>,
}

/// A `DaemonSet`. Default name: `<cr>-daemonset`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSet {
    /// Name, metadata and handling. Default name: `<cr>-daemonset`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// Port and probes.
    #[serde(flatten)]
    pub serving: Serving,
    /// The rolling update strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<OrTemplate<RollingUpdate>>,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
}

/// A `ReplicaSet`. Default name: `<cr>-replicaset`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Refused(&["rollOnChange"], "a `ReplicaSet` does not replace pods when its template changes: declare a Deployment"))]
pub struct ReplicaSet {
    /// Name, metadata and handling. Default name: `<cr>-replicaset`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// Port and probes.
    #[serde(flatten)]
    pub serving: Serving,
    /// The desired number of pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// Scaling of the number of pods by conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<WorkloadAutoscale>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<ReplicaSetLater>,
}

/// Further fields of a `ReplicaSet`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct ReplicaSetLater {
    /// The rolling update strategy. Kubernetes does not support it for a `ReplicaSet`.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    rolling_update: Option<RollingUpdate>,
}

/// A Pod. It is recreated for a change that Kubernetes cannot make in place. Default name: `<cr>-pod`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Refused(&["rollOnChange"], "a Pod has no pod template: declare a Deployment"))]
pub struct Pod {
    /// Name, metadata and handling. Default name: `<cr>-pod`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// Port and probes.
    #[serde(flatten)]
    pub serving: Serving,
}

/// A Job. It is created once. Default name: `<cr>-job`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Refused(&["rollOnChange"], "a Job is created once and runs to completion: its pods are not replaced"))]
pub struct Job {
    /// Name, metadata and handling. Default name: `<cr>-job`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// The maximum number of retries before the Job is marked as failed. Default `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<Scalar>,
    /// The number of seconds that the pods have to terminate when they are deleted: `terminationGracePeriodSeconds` of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_period_seconds: Option<Scalar>,
}

/// A `CronJob`. Default name: `<cr>-cronjob`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronJob {
    /// Name, metadata and handling. Default name: `<cr>-cronjob`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
    /// The schedule in cron format, with five fields.
    pub schedule: Text,
    /// If `true`, no further runs are started. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<Scalar>,
    /// The maximum number of seconds by which a run may start late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<Scalar>,
    /// The number of successful runs to keep. Default `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<Scalar>,
    /// The number of failed runs to keep. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<Scalar>,
    /// Specifies how to handle a run that is due while the previous one is still running: `allow`, `forbid` or `replace`.
    /// Default `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<Text>,
    /// The maximum number of retries before the Job is marked as failed. Default `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<Scalar>,
}
