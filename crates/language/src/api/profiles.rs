//! `profiles`: named profiles that a document declares, in one table of their classes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::later::Without;
use super::scalar::Scalar;
use orkestra_object::value::Node;

/// Calls a macro with the classes of profiles: the description of the field, the class, the fields that its profiles set, its
/// name, and where its profiles are referred to.
#[macro_export]
macro_rules! profile_classes {
    ($use:ident) => {
        $use! {
            /// For `operatorBox.reconciler.profile`.
            reconciler: profiles::Pace, "reconciler", "operatorBox.reconciler.profile";
            /// For `profile` of `networkPolicies`.
            network_policies: children::NetworkRules, "networkPolicies", "networkPolicies[].profile";
            /// For `profile` of `resourceQuotas`.
            resource_quotas: children::Quota, "resourceQuotas", "resourceQuotas[].profile";
            /// For `profile` of `limitRanges`.
            limit_ranges: children::Limits, "limitRanges", "limitRanges[].profile";
            /// For `behavior.profile` of `hpa`.
            hpa: profiles::Scaling, "hpa", "hpa[].behavior.profile";
            /// For `behavior.profile` of `pdb`.
            pdb: children::Budget, "pdb", "pdb[].behavior.profile";
            /// For `rollingUpdate.profile`.
            rolling_update: children::RollingUpdate, "rollingUpdate", "deployments[].rollingUpdate.profile";
            /// For `resources.profile`.
            resources: children::Resources, "resources", "deployments[].resources.profile";
            /// For `probes.<kind>.profile`.
            probes: children::Probe, "probes", "deployments[].probes.{startup,liveness,readiness}.profile";
            /// For `securityContext.profile`.
            container_security: children::SecurityContext, "containerSecurity", "deployments[].securityContext.profile";
            /// For `podSecurity.profile`.
            pod_security: children::PodSecurity, "podSecurity", "deployments[].podSecurity.profile";
        }
    };
}

macro_rules! profiles {
    ($(#[doc = $doc:literal] $class:ident: $($values:ident)::+, $name:literal, $field:literal;)*) => {
        /// Profiles that fields named `profile` refer to, by class. Names are unique within their class and case-insensitive.
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "camelCase", default)]
        pub struct Profiles {
            /// Path of a file with further profiles under `profiles`, relative to this file. Its profiles come first.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub include: Option<String>,
            $(
                #[doc = $doc]
                #[serde(rename = $name, skip_serializing_if = "Vec::is_empty")]
                pub $class: Vec<Profile<super::$($values)::+>>,
            )*
        }

        impl Profiles {
            /// The classes in order, each with the path of the fields that refer to its profiles.
            pub const CLASSES: &[(&str, &str)] = &[$(($name, $field)),*];

            /// The names of the profiles in order, class by class.
            pub fn names(&self) -> Vec<(&'static str, Vec<&str>)> {
                fn of<T>(list: &[Profile<T>]) -> Vec<&str> {
                    list.iter().map(|profile| profile.name.as_str()).collect()
                }
                vec![$(($name, of(&self.$class))),*]
            }
        }
    };
}
profile_classes!(profiles);

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
