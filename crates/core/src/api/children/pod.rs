//! Parts of pod-bearing children: resources, probes, security.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::scalar::{Scalar, Text};

/// What a container asks for and may use.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// A profile that stands for the other fields: a built-in one such as `small`, or one of `profiles.resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// What is set aside: `cpu`, `memory` and others, as quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub requests: BTreeMap<String, Text>,
    /// What is never exceeded: `cpu`, `memory` and others, as quantities.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, Text>,
}

/// The container's probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Probes {
    /// Holds the other probes back until it succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<Probe>,
    /// Restarts the container when it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Probe>,
    /// Takes the pod out of its Services while it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Probe>,
}

/// One probe. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// A profile that stands for the times and thresholds: a built-in one such as `standard`, or one of
    /// `profiles.probes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// `http` or `tcp`. Default: `http` when `path` is set, else `tcp`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The path that is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// The port that is asked. Default: the container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// Seconds before the first probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_delay_seconds: Option<Scalar>,
    /// Seconds between probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<Scalar>,
    /// Failures in a row that count as failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<Scalar>,
    /// Successes in a row that count as succeeded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_threshold: Option<Scalar>,
    /// Seconds that one probe may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Scalar>,
}

/// The container's security context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityContext {
    /// A profile that stands for the other fields: a built-in one such as `restricted`, or one of `profiles.containerSecurity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Refuses to start as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<Scalar>,
    /// Mounts the image read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<Scalar>,
    /// Whether a process may gain more rights than its parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<Scalar>,
    /// Linux capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
}

/// Linux capabilities that a container gains and loses.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// Gained.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<Text>,
    /// Lost; `ALL` is every one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<Text>,
}

/// The pod's security context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurity {
    /// A profile that stands for the other fields: a built-in one such as `restricted`, or one of `profiles.podSecurity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Refuses to start as root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<Scalar>,
    /// User id of the processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<Scalar>,
    /// Group id of the processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<Scalar>,
    /// Group id that owns the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<Scalar>,
}
