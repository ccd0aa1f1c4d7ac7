//! `when` and `or`: conditions on the custom resource and on other template data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::later::Later;
use super::scalar::{Scalar, Text, Texts};

/// Conditions: all of `when` and at least one of `or` must hold. An empty list always holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gates {
    /// Conditions that must all hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// Conditions of which at least one must hold. If `when` is also set, both apply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
}

/// A condition: a `field` with operators, or a time. If a condition has several operators, all must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GateCondition {
    /// The value to test: a path such as `spec.environment`, or a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Text>,
    /// Holds when the field's text is this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Scalar>,
    /// Holds when the field's text is not this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_equals: Option<Scalar>,
    /// If `true`, holds when the field exists and is not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// If `true`, holds when the field is missing or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_exists: Option<bool>,
    /// Holds when the field's text contains this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<Scalar>,
    /// Holds when the field's text does not contain this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_contains: Option<Scalar>,
    /// Holds when the field's text starts with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Scalar>,
    /// Holds when the field's text does not start with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_prefix: Option<Scalar>,
    /// Holds when the field's text ends with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffix: Option<Scalar>,
    /// Holds when the field's text does not end with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_suffix: Option<Scalar>,
    /// Holds when the field's text contains a match of this regular expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<Scalar>,
    /// Holds when the field is a number greater than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greater_than: Option<Scalar>,
    /// Holds when the field is a number less than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub less_than: Option<Scalar>,
    /// Holds when the field is a number that is at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greater_than_or_equal: Option<Scalar>,
    /// Holds when the field is a number that is at most this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub less_than_or_equal: Option<Scalar>,
    /// The same as `greaterThanOrEqual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<Scalar>,
    /// The same as `lessThanOrEqual`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<Scalar>,
    /// Holds when the field is a number in this inclusive range, such as `1,5`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Texts>,
    /// Holds when the field is a number outside this range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_between: Option<Texts>,
    /// Holds when the field's text is one of these: a list, or comma-separated text.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub in_: Option<Texts>,
    /// Holds when the field's text is none of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Texts>,
    /// The operator, by name. It compares the field with `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<GateOperator>,
    /// The operand of `operator`. May be a list for `between`, `in` and `typeOf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Texts>,
    /// The type as which `equals` and `in` compare both sides. Default `string`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_type: Option<ValueType>,
    /// If `true`, negates the result. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negate: Option<bool>,
    /// Holds during a time of day. Must be used without `field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeWindow>,
    /// Holds on the given days of the week. Must be used without `field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_of_week: Option<DayOfWeek>,
    /// Holds for `duration` after each time of this cron schedule, which has five fields. Must be used without `field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<Text>,
    /// The duration for which a `cron` condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// Fields that are not supported yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub later: Later<ConditionLater>,
}

/// Further fields of a condition.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub struct ConditionLater {
    /// The runtime from which a metric of another operator is read.
    source: Option<MetricSource>,
}

/// The runtime from which a metric of another operator is read.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "only the schema is used")]
pub(crate) struct MetricSource {
    /// URL of the runtime.
    host: Option<Text>,
    /// The duration for which a response is cached.
    cache_for: Option<Span>,
}

/// The operator of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GateOperator {
    /// The texts are equal.
    Equals,
    /// The texts differ.
    NotEquals,
    /// The field exists and is not empty.
    Exists,
    /// The field is missing or empty.
    NotExists,
    /// The text contains this.
    Contains,
    /// The text does not contain this.
    NotContains,
    /// The text starts with this.
    Prefix,
    /// The text does not start with this.
    NotPrefix,
    /// The text ends with this.
    Suffix,
    /// The text does not end with this.
    NotSuffix,
    /// The text contains a match of this regular expression.
    Regex,
    /// The field is a number greater than the value.
    Gt,
    /// The field is a number less than the value.
    Lt,
    /// The field is a number that is at least this.
    Gte,
    /// The field is a number that is at most this.
    Lte,
    /// The field is a number from the first to the second.
    Between,
    /// The field is a number outside of the two.
    NotBetween,
    /// The text is one of these.
    In,
    /// The text is none of these.
    NotIn,
    /// No other custom resource of the kind has the same text at this path.
    Unique,
    /// The field is of this type: `map`, `list`, `string`, `number`, `bool` or `null`.
    TypeOf,
    /// The field is a map.
    TypeMap,
    /// The field is a list.
    TypeList,
    /// The field is text.
    TypeString,
    /// The field is a number.
    TypeNumber,
    /// The field is `true` or `false`.
    TypeBool,
    /// The field is missing or null.
    TypeNull,
}

/// The type as which values are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ValueType {
    /// Text.
    #[default]
    String,
    /// An integer.
    Int,
    /// A number.
    Float,
    /// `true` or `false`.
    Bool,
}

/// A time of day, in UTC. If `after` is later than `before`, the window spans midnight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeWindow {
    /// Start of the window: `HH:MM`. Default: midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Text>,
    /// End of the window: `HH:MM`. Default: the next midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
}

/// Days of the week, in UTC. Exactly one field must be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DayOfWeek {
    /// `true` means Monday to Friday; `false` means the other days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekday: Option<bool>,
    /// `true` means Saturday and Sunday; `false` means the other days.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekend: Option<bool>,
    /// The days on which it holds, by English name: a list, or comma-separated text.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub in_: Option<Texts>,
    /// The days on which it does not hold, by English name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Texts>,
}
