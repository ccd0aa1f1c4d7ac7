//! `enrich`: what is added to children that templates read.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::gate::Gates;

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

/// Whether everything is added, or all but some.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum EnrichAll {
    /// Everything, or what `enrich` lists.
    Switch(bool),
    /// Everything but some.
    Except(EnrichExcept),
}

/// What is left out where everything else is added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EnrichExcept {
    /// What is not added.
    pub except: Vec<EnrichTarget>,
}

/// What is added to children.
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
