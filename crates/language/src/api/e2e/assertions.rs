//! Assertions on an output.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::scalar::{Scalar, Text, Texts};

/// Assertions on an output. All that are set must hold. Surrounding white space is ignored.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Assertions {
    /// The output is this text.
    pub equals: Option<Scalar>,
    /// The output is not this text.
    pub not_equals: Option<Scalar>,
    /// The output is one of these: a list, or comma-separated text.
    pub one_of: Option<Texts>,
    /// The output is none of these: a list, or comma-separated text.
    pub not_one_of: Option<Texts>,
    /// The output contains this text, or each of these texts.
    pub output_contains: Option<OneOrMore>,
    /// The output does not contain this text, or any of these texts.
    pub output_not_contains: Option<OneOrMore>,
    /// The output contains a match of this regular expression.
    pub regex: Option<Text>,
    /// The output is a number greater than this.
    pub greater_than: Option<Scalar>,
    /// The output is a number that is at least this.
    pub greater_than_or_equal: Option<Scalar>,
    /// The output is a number less than this.
    pub less_than: Option<Scalar>,
    /// The output is a number that is at most this.
    pub less_than_or_equal: Option<Scalar>,
    /// The output is a number in this inclusive range, such as `1,5`.
    pub between: Option<Texts>,
    /// The output is a number outside this range.
    pub not_between: Option<Texts>,
    /// If `true`, expects output; if `false`, expects no output.
    pub exists: Option<bool>,
    /// If `true`, expects no output; if `false`, expects output.
    pub not_exists: Option<bool>,
}

/// A text, or several.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum OneOrMore {
    /// Several.
    Several(Vec<Text>),
    /// One, commas included.
    One(Text),
}

impl OneOrMore {
    /// The texts.
    pub fn texts(&self) -> Vec<&str> {
        match self {
            Self::Several(texts) => texts.iter().map(Text::as_str).collect(),
            Self::One(text) => vec![text.as_str()],
        }
    }
}

impl Assertions {
    /// Whether nothing is expected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
