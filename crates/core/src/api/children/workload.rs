//! Kinds with pods.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::env::{Env, EnvFrom, NameRef};
use super::pod::{PodSecurity, Probes, Resources, SecurityContext};
use crate::api::autoscale::WorkloadAutoscale;
use crate::api::later::{Later, Refused};
use crate::api::planned::ReplicaSetLater;
use crate::api::scalar::{Scalar, Text, Texts};
use crate::value::Node;

/// The pod of every kind with pods.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodParts {
    /// The container's image.
    pub image: Text,
    /// Secrets with registry credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<NameRef>,
    /// The command, instead of the image's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Texts>,
    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Texts>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Env>,
    /// Environment variables from all keys of `ConfigMaps` and Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_from: Option<EnvFrom>,
    /// What the container asks for and may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// The container's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// The pod's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecurity>,
    /// The pod's volumes, as in a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub volumes: Vec<Node>,
    /// Where the container sees the volumes, as in a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub volume_mounts: Vec<Node>,
    /// Labels of the nodes that may run the pods.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, Text>,
    /// The service account that the pods run as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<Text>,
    /// The directory that the command starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Text>,
    /// Further containers beside that of `image`, as in a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub containers: Vec<Node>,
    /// Containers that must end before the others start, as in a Pod.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub init_containers: Vec<Node>,
}

/// What kinds have whose pods keep running.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Serving {
    /// The port that the container listens on; empty or 0 is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// The port's protocol: `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// Startup, liveness and readiness probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
}

/// How a change of a workload is rolled out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RollingUpdate {
    /// A profile that stands for the other fields: a built-in one such as `safe`, or one of `profiles.rollingUpdate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Pods above the wanted number, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Scalar>,
    /// Pods below the wanted number, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Scalar>,
}

/// Whether the pods of a workload follow their configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rolling {
    /// `true` rolls the pods when a Secret or a `ConfigMap` changes that they take variables, files or credentials from; of a
    /// `CronJob`, those of the runs that start from then on. Default `false`.
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
    /// How many pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// How a change is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
    /// Changes the number of pods by conditions.
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
    /// The image's tag, when `image` has neither tag nor digest. Default `latest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<Text>,
    /// How many pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// How a change is rolled out; of it, `maxSurge` has no effect here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
    /// The headless Service that names the pods. Default: the object's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_name: Option<Text>,
    /// Volumes of each pod's own. Kubernetes changes none of them later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_claim_templates: Vec<VolumeClaimTemplate>,
    /// Changes the number of pods by conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<WorkloadAutoscale>,
}

/// A volume of each pod's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeClaimTemplate {
    /// The volume's name. Default `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// Its storage class. Default: the cluster's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_class: Option<Text>,
    /// How large it is, as a quantity.
    pub storage_size: Text,
    /// Where the container sees it. Default: where `volumeMounts` says.
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
    /// How a change is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
    /// Whether its pods follow their configuration.
    #[serde(flatten)]
    pub rolling: Rolling,
}

/// A `ReplicaSet`. Default name: `<cr>-replicaset`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Refused(&["rollOnChange"], "a `ReplicaSet` exchanges no pods when its template changes: declare a Deployment"))]
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
    /// How many pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// Changes the number of pods by conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<WorkloadAutoscale>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<ReplicaSetLater>,
}

/// A Pod; a change that Kubernetes does not make in place makes it anew. Default name: `<cr>-pod`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Refused(&["rollOnChange"], "a Pod has no template from which others are made: declare a Deployment"))]
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

/// A Job; it is made once. Default name: `<cr>-job`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Refused(&["rollOnChange"], "a Job is made once and runs to its end: nothing of it is exchanged"))]
pub struct Job {
    /// Name, metadata and handling. Default name: `<cr>-job`.
    #[serde(flatten)]
    pub common: Common,
    /// The pod.
    #[serde(flatten)]
    pub pod: PodParts,
    /// How often a failed pod is tried again. Default `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<Scalar>,
    /// Seconds that its pods have to end when they are deleted: `terminationGracePeriodSeconds` of the pod.
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
    /// When it runs, in five fields.
    pub schedule: Text,
    /// `true` starts no further run. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<Scalar>,
    /// How late a run may start, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_seconds: Option<Scalar>,
    /// Finished runs that are kept. Default `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub successful_jobs_history_limit: Option<Scalar>,
    /// Failed runs that are kept. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_jobs_history_limit: Option<Scalar>,
    /// What a run does while the one before still runs: `allow`, `forbid` or `replace`. Default `allow`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency_policy: Option<Text>,
    /// How often a failed pod is tried again. Default `3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<Scalar>,
}
