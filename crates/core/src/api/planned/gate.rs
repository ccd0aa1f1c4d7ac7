//! Conditions, and what gates and expands children.

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Further fields of a condition.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionLater {
    /// Where a metric of another operator is read.
    source: Option<MetricSource>,
}

/// Where a metric of another operator is read.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MetricSource {
    /// URL of the runtime that has it.
    host: Option<Text>,
    /// How long an answer is used.
    cache_for: Option<Span>,
}

/// Further handling of a child.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ControlLater {
    /// Waits before the object.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "a delay blocks a worker; wait for a condition with `when`"))]
    sleep: Option<Span>,
}

/// Further fields of objects of any kind.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CustomLater {
    /// The status that the object gets when it is made.
    status: Option<serde_json::Value>,
    /// Whether the kind has a status subresource.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "the definition of the kind says so"))]
    has_status: Option<bool>,
}
