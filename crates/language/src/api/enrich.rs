//! `enrich`: data that is added to children when templates read them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate::Gates;

/// Data to add to children: a name, or a name with conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Enrich {
    /// The name only.
    Target(EnrichTarget),
    /// The name as the only key, with conditions.
    Gated(BTreeMap<String, Gates>),
}

/// Adds everything, or everything except some items.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum EnrichAll {
    /// Everything, or only what `enrich` lists.
    Switch(bool),
    /// Everything except some items.
    Except(EnrichExcept),
}

/// Items that are excluded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnrichExcept {
    /// A list of items that are not added.
    pub except: Vec<EnrichTarget>,
}

/// Data to add to children.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum EnrichTarget {
    /// `_pods` of Deployments, `StatefulSets`, `DaemonSets`, `ReplicaSets` and Jobs.
    Pods,
    /// `_warnings` of any child.
    Events,
    /// `_owner` of `ReplicaSets`.
    Owner,
    /// `_replicaSets` of Deployments.
    ReplicaSets,
    /// `_pvcs` of `StatefulSets`.
    Pvcs,
    /// `_pv` of `PersistentVolumeClaims`.
    Pvc,
    /// `_pvc` of `PersistentVolumes`.
    Pv,
    /// `_storageClass` of `PersistentVolumeClaims`.
    StorageClass,
    /// `_backingPods` of Services.
    BackingPods,
    /// `_endpoints` of Services.
    Endpoints,
    /// `_node` of Pods.
    Node,
    /// `_currentMetrics` and `_scaleTarget` of `HorizontalPodAutoscalers`.
    Hpa,
    /// `_activeJobs`, `_lastJob` and `_lastSuccessfulJob` of `CronJobs`.
    CronJob,
    /// `_loadBalancerIPs` and `_tlsSecrets` of Ingresses.
    Ingress,
}
