//! `profiles`: named profiles of a document's own, a list for each class.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::children::{PodSecurity, Probe, Resources, RollingUpdate, SecurityContext};
use super::duration::Span;
use super::later::Without;
use super::scalar::{Scalar, Text};
use crate::value::Node;

/// Profiles that fields named `profile` refer to, by class. Names count within their class; case doesn't count.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Profiles {
    /// File with more profiles under `profiles`, relative to this one. Its profiles come first.
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

/// A profile: a name for some fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "{T}Profile", transform = Without(NOT_IN_PROFILES))]
pub struct Profile<T> {
    /// The name that `profile` fields refer to.
    pub name: String,
    /// What it is for; shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The fields it stands for.
    #[serde(flatten)]
    pub values: T,
}

/// Fields of a profile for reconcilers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Pace {
    /// How many resources are reconciled at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// How often every resource is reconciled without a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueueProfile>,
}

/// Fields of a profile for queues.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct QueueProfile {
    /// The depth that autoscaling takes as full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub max_depth: Option<u32>,
}

/// Rules of a network policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRules {
    /// Who may connect to the pods; `[]` is nobody. Labels of peers are written as plain maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    pub ingress: Option<Vec<Node>>,
    /// What the pods may connect to; `[]` is nothing. Labels of peers are written as plain maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<serde_json::Value>>")]
    pub egress: Option<Vec<Node>>,
    /// `Ingress` and `Egress`, as far as the policy is about them. Default: those that are declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_types: Option<Vec<Text>>,
}

/// What a namespace may use in sum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quota {
    /// Quantities by what they limit: `pods`, `requests.cpu`, `limits.memory`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub hard: BTreeMap<String, Text>,
}

/// What objects of a namespace may use each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// The limits, an item for each type of object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
}

/// What objects of a type may use each, as quantities by resource.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limit {
    /// `Container`, `Pod` or `PersistentVolumeClaim`.
    #[serde(rename = "type")]
    pub type_: Text,
    /// Limits of containers that declare none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default: BTreeMap<String, Text>,
    /// Requests of containers that declare none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub default_request: BTreeMap<String, Text>,
    /// The most.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max: BTreeMap<String, Text>,
    /// The least.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub min: BTreeMap<String, Text>,
}

/// How a workload is scaled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Scaling {
    /// The fewest pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<Scalar>,
    /// The most pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<Scalar>,
    /// The share of requested CPU to aim for, in percent.
    #[serde(
        rename = "targetCPUUtilizationPercentage",
        skip_serializing_if = "Option::is_none"
    )]
    pub target_cpu_utilization_percentage: Option<Scalar>,
    /// How fast, as in a `HorizontalPodAutoscaler`: `scaleUp` and `scaleDown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub behavior: Option<Node>,
}

/// How many pods may be missing; one of the two is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Pods that must stay, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<Scalar>,
    /// Pods that may be missing, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Scalar>,
}
