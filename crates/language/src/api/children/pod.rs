//! Parts of pod-bearing children: resources, probes, security.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::or_template::OrTemplate;
use crate::api::scalar::{Scalar, Text};

/// Compute resources of a container.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// A profile that provides the other fields: a built-in one such as `small`, or one of `profiles.resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Requested resources: `cpu`, `memory` and others, as quantities.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub requests: OrTemplate<BTreeMap<String, Text>>,
    /// The maximum resources: `cpu`, `memory` and others, as quantities.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub limits: OrTemplate<BTreeMap<String, Text>>,
}

/// The container's probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Probes {
    /// Startup probe. The other probes start after it succeeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup: Option<OrTemplate<Probe>>,
    /// Liveness probe. If it fails, the container is restarted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub liveness: Option<OrTemplate<Probe>>,
    /// Readiness probe. While it fails, the pod is removed from the endpoints of its Services.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readiness: Option<OrTemplate<Probe>>,
}

/// One probe. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Probe {
    /// A profile that provides the times and thresholds: a built-in one such as `standard`, or one of `profiles.probes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Type of the probe: `http` or `tcp`. Default: `http` when `path` is set, else `tcp`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The path of the HTTP request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// The port to probe. Default: the container's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// Number of seconds after the container starts before the first probe.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_delay_seconds: Option<Scalar>,
    /// Number of seconds between probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_seconds: Option<Scalar>,
    /// The minimum number of consecutive failures for the probe to be considered failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_threshold: Option<Scalar>,
    /// The minimum number of consecutive successes for the probe to be considered successful.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_threshold: Option<Scalar>,
    /// Number of seconds after which a probe times out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<Scalar>,
}

/// The container's security context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecurityContext {
    /// A profile that provides the other fields: a built-in one such as `restricted`, or one of `profiles.containerSecurity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// If `true`, the container must run as a non-root user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<Scalar>,
    /// If `true`, the container's root filesystem is read-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<Scalar>,
    /// If `true`, a process can gain more privileges than its parent process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<Scalar>,
    /// Linux capabilities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<OrTemplate<Capabilities>>,
}

/// Linux capabilities to add to and drop from a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Capabilities {
    /// Capabilities to add.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub add: OrTemplate<Vec<Text>>,
    /// Capabilities to drop. `ALL` drops every capability.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub drop: OrTemplate<Vec<Text>>,
}

/// The pod's security context.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSecurity {
    /// A profile that provides the other fields: a built-in one such as `restricted`, or one of `profiles.podSecurity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// If `true`, all containers must run as a non-root user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<Scalar>,
    /// User ID of the processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_user: Option<Scalar>,
    /// Group ID of the processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_as_group: Option<Scalar>,
    /// Group ID that owns the volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fs_group: Option<Scalar>,
}
