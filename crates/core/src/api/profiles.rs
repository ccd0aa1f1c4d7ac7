//! `profiles`: named profiles of a document's own, a list for each class.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::children::{
    Budget, Limits, NetworkRules, PodSecurity, Probe, Quota, Resources, RollingUpdate,
    SecurityContext,
};
use super::duration::Span;
use super::later::Without;
use super::scalar::Scalar;
use crate::value::Node;

/// Profiles that fields named `profile` refer to, by class. Names are unique within their class and case-insensitive.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Profiles {
    /// Path of a file with further profiles under `profiles`, relative to this file. Its profiles come first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include: Option<String>,
    /// For `operatorBox.reconciler.profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reconciler: Vec<Profile<Pace>>,
    /// For `profile` of `networkPolicies`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network_policies: Vec<Profile<NetworkRules>>,
    /// For `profile` of `resourceQuotas`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resource_quotas: Vec<Profile<Quota>>,
    /// For `profile` of `limitRanges`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limit_ranges: Vec<Profile<Limits>>,
    /// For `behavior.profile` of `hpa`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hpa: Vec<Profile<Scaling>>,
    /// For `behavior.profile` of `pdb`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pdb: Vec<Profile<Budget>>,
    /// For `rollingUpdate.profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rolling_update: Vec<Profile<RollingUpdate>>,
    /// For `resources.profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Profile<Resources>>,
    /// For `probes.<kind>.profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<Profile<Probe>>,
    /// For `securityContext.profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub container_security: Vec<Profile<SecurityContext>>,
    /// For `podSecurity.profile`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pod_security: Vec<Profile<PodSecurity>>,
}

impl Profiles {
    /// The names of the profiles in order, class by class.
    pub fn names(&self) -> Vec<(&'static str, Vec<&str>)> {
        fn of<T>(list: &[Profile<T>]) -> Vec<&str> {
            list.iter().map(|profile| profile.name.as_str()).collect()
        }
        let Profiles {
            include: _,
            reconciler,
            network_policies,
            resource_quotas,
            limit_ranges,
            hpa,
            pdb,
            rolling_update,
            resources,
            probes,
            container_security,
            pod_security,
        } = self;
        vec![
            ("reconciler", of(reconciler)),
            ("networkPolicies", of(network_policies)),
            ("resourceQuotas", of(resource_quotas)),
            ("limitRanges", of(limit_ranges)),
            ("hpa", of(hpa)),
            ("pdb", of(pdb)),
            ("rollingUpdate", of(rolling_update)),
            ("resources", of(resources)),
            ("probes", of(probes)),
            ("containerSecurity", of(container_security)),
            ("podSecurity", of(pod_security)),
        ]
    }
}

/// What a profile cannot say: another profile, and what a probe asks for.
const NOT_IN_PROFILES: &[&str] = &["profile", "type", "path", "port"];

/// A named set of fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Profile", transform = Without(NOT_IN_PROFILES))]
pub struct Profile<T> {
    /// The name that `profile` fields refer to.
    pub name: String,
    /// A description for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The fields that the profile sets.
    #[serde(flatten)]
    pub values: T,
}

/// Fields of a profile for reconcilers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pace {
    /// The maximum number of resources that are reconciled concurrently.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// The interval at which every custom resource is reconciled without a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
    /// The queue of the operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueProfile>,
}

/// Fields of a profile for queues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueProfile {
    /// The depth that autoscaling treats as a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub max_depth: Option<u32>,
}

/// Scaling of a workload.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Scaling {
    /// The minimum number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<Scalar>,
    /// The maximum number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<Scalar>,
    /// The target average CPU utilization, as a percentage of the requested CPU.
    #[serde(
        rename = "targetCPUUtilizationPercentage",
        skip_serializing_if = "Option::is_none"
    )]
    pub target_cpu_utilization_percentage: Option<Scalar>,
    /// The scaling behavior, as in a `HorizontalPodAutoscaler`: `scaleUp` and `scaleDown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub behavior: Option<Node>,
}
