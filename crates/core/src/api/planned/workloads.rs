//! Kinds with pods.

use schemars::JsonSchema;

use crate::api::children::RollingUpdate;

/// Further fields of a `ReplicaSet`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicaSetLater {
    /// Kubernetes rolls nothing out here.
    #[schemars(extend("x-orkestra-support" = "ignored"))]
    rolling_update: Option<RollingUpdate>,
}
