//! `deployments`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::env::{Env, EnvFrom, NameRef};
use super::pod::{PodSecurity, Probes, Resources, SecurityContext};
use crate::api::autoscale::WorkloadAutoscale;
use crate::api::scalar::{Scalar, Text, Texts};
use crate::value::Node;

/// A Deployment with one container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Deployment {
    /// Name, metadata and handling. Default name: `<cr>-deployment`.
    #[serde(flatten)]
    pub common: Common,
    /// The container's image.
    pub image: Text,
    /// Secrets with registry credentials.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<NameRef>,
    /// How many pods. Default `1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Scalar>,
    /// The port that the container listens on; empty or 0 is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// The port's protocol: `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
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
    /// Startup, liveness and readiness probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Probes>,
    /// The container's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// The pod's security context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_security: Option<PodSecurity>,
    /// How a change is rolled out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling_update: Option<RollingUpdate>,
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
    /// `true` rolls the pods when a Secret or a `ConfigMap` changes that they take variables, files or credentials from.
    /// Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll_on_change: Option<bool>,
    /// The directory that the command starts in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Text>,
    /// Changes the number of pods by conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscale: Option<WorkloadAutoscale>,
}

/// How a change of a Deployment is rolled out.
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
