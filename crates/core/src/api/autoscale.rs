//! `autoscale`: what changes the capacity of an operator.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::gate::Gates;

/// Changes workers and queue by conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Autoscale {
    /// How often the conditions are looked at. Default `15s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// How long they must not hold before everything is as declared again. Default `2m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown: Option<Span>,
    /// When `do` counts: on `metrics.…` and `cross.<as>.metrics.…`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conditions: Option<Gates>,
    /// What counts while they hold.
    #[serde(rename = "do", skip_serializing_if = "Option::is_none")]
    pub do_: Option<Capacity>,
    /// A built-in profile that stands for the other fields: `burst`, `steady`, `batch`, `latency-sensitive` or
    /// `cost-optimized`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

/// What counts while an autoscaler's conditions hold.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Capacity {
    /// Workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub workers: Option<u32>,
    /// The depth that counts as a full queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000))]
    pub queue_depth: Option<u32>,
    /// The resync period.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resync: Option<Span>,
}
