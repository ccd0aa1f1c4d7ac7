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
    /// Makes an object for each element of a list.
    for_each: Option<ForEach>,
    /// Waits before the object, in tests of a Katalog.
    sleep: Option<Span>,
}

/// A list whose elements are gone through.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForEach {
    /// Path of a list or map in the custom resource, such as `spec.regions`.
    field: Text,
    /// What templates call the element, beside `.item`. Default `item`.
    #[serde(rename = "as")]
    as_: Option<String>,
}

/// Further fields of objects of any kind.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CustomLater {
    /// The status that the object gets when it is made.
    status: Option<serde_json::Value>,
    /// Whether the kind has a status subresource. Default: read from the cluster.
    has_status: Option<bool>,
}
