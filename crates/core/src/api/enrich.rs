//! `enrich`: what is added to children that templates read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate::Gates;
use super::later::LaterValues;

/// Something that is added to children: its name, or its name with conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Enrich {
    /// It alone.
    Target(EnrichTarget),
    /// It as the only key, with conditions.
    Gated(BTreeMap<String, Gates>),
}

/// What is added to children.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[schemars(transform = LaterValues(&[
    "events", "owner", "pvcs", "pv", "pvc", "storageclass", "backingpods", "node", "hpa", "cronjob", "ingress",
]))]
pub enum EnrichTarget {
    /// `_pods` of Deployments, `StatefulSets`, `DaemonSets`, `ReplicaSets` and Jobs.
    Pods,
    /// `_replicaSets` of Deployments.
    ReplicaSets,
    /// `_endpoints` of Services.
    Endpoints,
}
