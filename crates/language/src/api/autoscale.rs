//! `autoscale`: conditions that change the capacity of an operator, or the number of pods of a workload.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::gate::Gates;
use super::scalar::Scalar;

/// Scaling of workers and queue by conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Autoscale {
    /// The interval at which the conditions are evaluated. Default `15s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// The duration for which the conditions must not hold before the declared values apply again. Default `2m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Span>,
    /// The conditions under which `do` applies, on `metrics.…` and `cross.<as>.metrics.…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Gates>,
    /// The capacity while the conditions hold.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub do_: Option<Capacity>,
    /// A built-in profile that provides the other fields: `burst`, `steady`, `batch`, `latency-sensitive` or `cost-optimized`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// The capacity while an autoscaler's conditions hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Capacity {
    /// The number of workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// The depth at which the queue counts as full.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub queue_depth: Option<u32>,
    /// The resync period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
}

/// Scaling of the number of pods by conditions, which are evaluated in every reconcile pass. `replicas` is only the initial
/// number.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadAutoscale {
    /// The minimum number of pods. Default `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Scalar>,
    /// The maximum number of pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Scalar>,
    /// The minimum interval between two changes. Default `1m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Span>,
    /// Scaling up. Takes precedence over `scaleDown` if both hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScaleUp>,
    /// Scaling down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down: Option<ScaleDown>,
}

/// Scaling up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleUp {
    /// The conditions for scaling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Gates>,
    /// The number of pods to add. Default `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increment: Option<Scalar>,
}

/// Scaling down.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScaleDown {
    /// The conditions for scaling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Gates>,
    /// The number of pods to remove. Default `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decrement: Option<Scalar>,
}
