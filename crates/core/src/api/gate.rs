//! `when` and `or`: conditions on the custom resource and on what is known about the world.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::later::{Later, LaterValues};
use super::planned::ConditionLater;
use super::scalar::{Scalar, Text};

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

/// One condition. With several operators in one condition all must hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
    /// What is not built yet.
    #[serde(skip)]
    #[schemars(!skip, flatten)]
    pub(crate) later: Later<ConditionLater>,
}

/// How a condition compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = LaterValues(&[
    "between", "contains", "gt", "gte", "in", "lt", "lte", "notBetween", "notContains", "notIn", "notPrefix",
    "notSuffix", "prefix", "regex", "suffix", "typeBool", "typeList", "typeMap", "typeNull", "typeNumber",
    "typeOf", "typeString", "unique",
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
