//! Conditions, and what gates and expands children.

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::{Scalar, Text, Texts};

/// Further tests of a condition.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConditionLater {
    /// Holds when the field's text has this in it.
    contains: Option<Scalar>,
    /// Holds when the field's text doesn't have this in it.
    not_contains: Option<Scalar>,
    /// Holds when the field's text starts with this.
    prefix: Option<Scalar>,
    /// Holds when the field's text doesn't start with this.
    not_prefix: Option<Scalar>,
    /// Holds when the field's text ends with this.
    suffix: Option<Scalar>,
    /// Holds when the field's text doesn't end with this.
    not_suffix: Option<Scalar>,
    /// Holds when this regular expression is found in the field's text.
    regex: Option<Scalar>,
    /// Holds when the field is a greater number.
    greater_than: Option<Scalar>,
    /// Holds when the field is a smaller number.
    less_than: Option<Scalar>,
    /// Holds when the field is a number that is at least this.
    greater_than_or_equal: Option<Scalar>,
    /// Holds when the field is a number that is at most this.
    less_than_or_equal: Option<Scalar>,
    /// The same as `greaterThanOrEqual`.
    min: Option<Scalar>,
    /// The same as `lessThanOrEqual`.
    max: Option<Scalar>,
    /// Holds when the field is a number from the first to the second: `1,5`, both included.
    between: Option<Texts>,
    /// Holds when the field is a number outside of `between`.
    not_between: Option<Texts>,
    /// Holds when the field's text is one of these: a list, or text with commas.
    #[serde(rename = "in")]
    in_: Option<Texts>,
    /// Holds when the field's text is none of these.
    not_in: Option<Texts>,
    /// As what both sides are compared. Default `string`.
    value_type: Option<ValueType>,
    /// `true` turns the result around. Default `false`.
    negate: Option<bool>,
    /// Where a metric of another operator is read.
    source: Option<MetricSource>,
    /// Holds at some time of the day. Stands without `field`.
    time: Option<TimeWindow>,
    /// Holds on some days of the week. Stands without `field`.
    day_of_week: Option<DayOfWeek>,
    /// Holds for `duration` after each moment of this schedule, in five fields. Stands without `field`.
    cron: Option<Text>,
    /// How long a `cron` condition holds.
    duration: Option<Span>,
}

/// As what values are compared or written.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ValueType {
    /// Text.
    String,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// `true` or `false`.
    Bool,
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

/// A time of the day, in UTC. With `after` later than `before` it goes over midnight.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TimeWindow {
    /// Where it begins: `HH:MM`.
    after: Option<Text>,
    /// Where it ends: `HH:MM`.
    before: Option<Text>,
}

/// Days of the week, in UTC; exactly one field is given.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DayOfWeek {
    /// `true` is Monday to Friday, `false` the others.
    weekday: Option<bool>,
    /// `true` is Saturday and Sunday, `false` the others.
    weekend: Option<bool>,
    /// These days, by their English names.
    #[serde(rename = "in")]
    in_: Option<Texts>,
    /// All but these days, by their English names.
    not_in: Option<Texts>,
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
