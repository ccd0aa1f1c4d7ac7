//! What is expected of an output.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::api::scalar::{Scalar, Text, Texts};

/// What is expected of an output: all that is given must hold. White space around the output does not count.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Assertions {
    /// The output is this text.
    pub equals: Option<Scalar>,
    /// The output is another text.
    pub not_equals: Option<Scalar>,
    /// The output is one of these: a list, or text with commas.
    pub one_of: Option<Texts>,
    /// The output is none of these: a list, or text with commas.
    pub not_one_of: Option<Texts>,
    /// The output contains this text, or each of these texts.
    pub output_contains: Option<OneOrMore>,
    /// The output does not contain this text, or any of these texts.
    pub output_not_contains: Option<OneOrMore>,
    /// The output contains a match of this regular expression.
    pub regex: Option<Text>,
    /// The output is a greater number.
    pub greater_than: Option<Scalar>,
    /// The output is a number that is at least this.
    pub greater_than_or_equal: Option<Scalar>,
    /// The output is a smaller number.
    pub less_than: Option<Scalar>,
    /// The output is a number that is at most this.
    pub less_than_or_equal: Option<Scalar>,
    /// The output is a number from the first to the second: `1,5`, both included.
    pub between: Option<Texts>,
    /// The output is a number outside of the two.
    pub not_between: Option<Texts>,
    /// `true` expects some output, `false` none.
    pub exists: Option<bool>,
    /// `true` expects no output, `false` some.
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
