//! `when`: conditions on the custom resource and on what is known about the world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::later::{Later, LaterValues};
use super::scalar::{Scalar, Text};

/// One condition. With several operators in one condition all must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = Later(&[
    "between", "contains", "cron", "dayOfWeek", "duration", "greaterThan", "greaterThanOrEqual", "gt",
    "hasPrefix", "hasSuffix", "in", "lessThan", "lessThanOrEqual", "lt", "max", "min", "negate",
    "notBetween", "notContains", "notIn", "notPrefix", "notSuffix", "prefix", "regex", "source",
    "suffix", "time", "valueType",
]))]
pub struct GateCondition {
    /// What is tested: a path such as `spec.environment`, or a template.
    pub field: Text,
    /// Holds when the field's text is this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equals: Option<Scalar>,
    /// Holds when the field's text is not this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_equals: Option<Scalar>,
    /// `true` holds when the field is there and not empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exists: Option<bool>,
    /// `true` holds when the field is missing or empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_exists: Option<bool>,
    /// The operator by name; the operand is in `value`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<GateOperator>,
    /// Operand of `operator`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Scalar>,
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = LaterValues(&[
    "between", "contains", "greaterThan", "greaterThanOrEqual", "gt", "gte", "hasPrefix", "hasSuffix",
    "in", "lessThan", "lessThanOrEqual", "lt", "lte", "matches", "notBetween", "notContains", "notIn",
    "notPrefix", "notSuffix", "prefix", "regex", "suffix", "typeBool", "typeList", "typeMap",
    "typeNull", "typeNumber", "typeOf", "typeString", "unique",
]))]
pub enum GateOperator {
    /// The texts are the same.
    Equals,
    /// The texts differ.
    NotEquals,
    /// The field is there and not empty.
    Exists,
    /// The field is missing or empty.
    NotExists,
}
