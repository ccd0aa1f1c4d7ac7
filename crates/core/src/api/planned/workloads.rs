//! Kinds with pods.

use schemars::JsonSchema;

use crate::api::children::RollingUpdate;

/// Further fields of a `ReplicaSet`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSetLater {
    /// The rolling update strategy. Kubernetes does not support it for a `ReplicaSet`.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    rolling_update: Option<RollingUpdate>,
}
