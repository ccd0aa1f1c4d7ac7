//! `notes`: functions that a document declares for its own templates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Functions that templates can call, in addition to the built-in ones: under `functions`, or as a plain list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Notes {
    /// The list alone.
    List(Vec<Note>),
    /// Under `functions`.
    Functions(NoteFunctions),
}

/// The functions under their key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NoteFunctions {
    /// A list of functions, in any order. Each can call any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Note>,
}

/// A function that the document declares. It takes no arguments and reads the same data as the calling template.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// Name of the function in templates: a letter, then letters, digits and `_`.
    pub name: String,
    /// A description of the result for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The template that gives the function's value. It can call built-in functions and others of the list.
    pub expression: String,
    /// If `true`, the function may replace a built-in function of the same name. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow: Option<bool>,
}

impl Notes {
    /// The functions, in the order of declaration.
    pub fn functions(&self) -> &[Note] {
        match self {
            Notes::List(list) => list,
            Notes::Functions(NoteFunctions { functions }) => functions,
        }
    }

    /// Keys from the block to the list of functions, for paths: none when the list stands alone.
    pub fn keys(&self) -> &'static [&'static str] {
        match self {
            Notes::List(_) => &[],
            Notes::Functions(_) => &["functions"],
        }
    }
}
