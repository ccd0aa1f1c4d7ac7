//! Conditions, and what gates and expands children.

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Further fields of a condition.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionLater {
    /// The runtime from which a metric of another operator is read.
    source: Option<MetricSource>,
}

/// The runtime from which a metric of another operator is read.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetricSource {
    /// URL of the runtime.
    host: Option<Text>,
    /// The duration for which a response is cached.
    cache_for: Option<Span>,
}

/// Further options of a child.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ControlLater {
    /// The delay before the object is created.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "a delay blocks a worker; wait for a condition with `when`"))]
    sleep: Option<Span>,
}

/// Further fields of objects of any kind.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CustomLater {
    /// The initial status of the object.
    status: Option<serde_json::Value>,
    /// If `true`, the kind has a status subresource.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "this is read from the definition of the kind"))]
    has_status: Option<bool>,
}
