//! `when` and `or`: conditions on the custom resource and on what is known about the world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use super::later::Later;
use super::planned::ConditionLater;
use super::scalar::{Scalar, Text, Texts};

/// Conditions: all of `when` and one of `or` must hold. A list that is empty asks nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gates {
    /// All must hold.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub when: Vec<GateCondition>,
    /// One must hold. Beside `when` both count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub or: Vec<GateCondition>,
}

/// One condition: a `field` and what is asked of it, or a time. With several operators in one condition all must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GateCondition {
    /// What is tested: a path such as `spec.environment`, or a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<Text>,
    /// Holds when the field's text is this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equals: Option<Scalar>,
    /// Holds when the field's text is not this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_equals: Option<Scalar>,
    /// `true` holds when the field is there and not empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// `true` holds when the field is missing or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_exists: Option<bool>,
    /// Holds when the field's text has this in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<Scalar>,
    /// Holds when the field's text doesn't have this in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_contains: Option<Scalar>,
    /// Holds when the field's text starts with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Scalar>,
    /// Holds when the field's text doesn't start with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_prefix: Option<Scalar>,
    /// Holds when the field's text ends with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suffix: Option<Scalar>,
    /// Holds when the field's text doesn't end with this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_suffix: Option<Scalar>,
    /// Holds when this regular expression is found in the field's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regex: Option<Scalar>,
    /// Holds when the field is a greater number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub greater_than: Option<Scalar>,
    /// Holds when the field is a smaller number.
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
    /// Holds when the field is a number from the first to the second: `1,5`, both included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<Texts>,
    /// Holds when the field is a number outside of `between`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_between: Option<Texts>,
    /// Holds when the field's text is one of these: a list, or text with commas.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub in_: Option<Texts>,
    /// Holds when the field's text is none of these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Texts>,
    /// The operator by name; what it compares with is in `value`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<GateOperator>,
    /// What `operator` compares with. Of `between`, `in` and `typeOf` it may be a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Texts>,
    /// As what both sides are compared by `equals` and `in`. Default `string`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_type: Option<ValueType>,
    /// `true` turns the result around. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub negate: Option<bool>,
    /// Holds at some time of the day. Stands without `field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeWindow>,
    /// Holds on some days of the week. Stands without `field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub day_of_week: Option<DayOfWeek>,
    /// Holds for `duration` after each moment of this schedule, in five fields. Stands without `field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cron: Option<Text>,
    /// How long a `cron` condition holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<ConditionLater>,
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum GateOperator {
    /// The texts are the same.
    Equals,
    /// The texts differ.
    NotEquals,
    /// The field is there and not empty.
    Exists,
    /// The field is missing or empty.
    NotExists,
    /// The text has this in it.
    Contains,
    /// The text doesn't have this in it.
    NotContains,
    /// The text starts with this.
    Prefix,
    /// The text doesn't start with this.
    NotPrefix,
    /// The text ends with this.
    Suffix,
    /// The text doesn't end with this.
    NotSuffix,
    /// This regular expression is found in the text.
    Regex,
    /// The field is a greater number.
    Gt,
    /// The field is a smaller number.
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
    /// The field is missing, or nothing.
    TypeNull,
}

/// As what values are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ValueType {
    /// Text.
    #[default]
    String,
    /// A whole number.
    Int,
    /// A number.
    Float,
    /// `true` or `false`.
    Bool,
}

/// A time of the day, in UTC. With `after` later than `before` it goes over midnight.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TimeWindow {
    /// Where it begins: `HH:MM`. Default: midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Text>,
    /// Where it ends: `HH:MM`. Default: the next midnight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Text>,
}

/// Days of the week, in UTC; exactly one field is given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DayOfWeek {
    /// `true` is Monday to Friday, `false` the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekday: Option<bool>,
    /// `true` is Saturday and Sunday, `false` the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weekend: Option<bool>,
    /// These days, by their English names: a list, or text with commas.
    #[serde(rename = "in", skip_serializing_if = "Option::is_none")]
    pub in_: Option<Texts>,
    /// All but these days, by their English names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_in: Option<Texts>,
}
