//! Workloads.

use schemars::JsonSchema;

use crate::api::children::RollingUpdate;
use crate::api::duration::Span;
use crate::api::gate::Gates;
use crate::api::scalar::Scalar;

/// Further fields of a workload whose pods can be more or fewer.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadLater {
    /// Changes the number of pods by conditions.
    autoscale: Option<WorkloadAutoscale>,
}

/// Further fields of a `ReplicaSet`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSetLater {
    #[serde(flatten)]
    workload: WorkloadLater,
    /// Kubernetes rolls nothing out here.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    rolling_update: Option<RollingUpdate>,
}

/// Changes the number of pods by conditions, once a pass. `replicas` is only where it starts.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkloadAutoscale {
    /// The fewest pods.
    min: Option<Scalar>,
    /// The most pods.
    max: Option<Scalar>,
    /// The least time between two changes.
    cooldown: Option<Span>,
    /// When there are to be more.
    scale_up: Option<ScaleUp>,
    /// When there are to be fewer.
    scale_down: Option<ScaleDown>,
}

/// When there are to be more pods.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScaleUp {
    /// The conditions.
    conditions: Option<Gates>,
    /// How many more. Default `1`.
    increment: Option<Scalar>,
}

/// When there are to be fewer pods.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScaleDown {
    /// The conditions.
    conditions: Option<Gates>,
    /// How many fewer. Default `1`.
    decrement: Option<Scalar>,
}
