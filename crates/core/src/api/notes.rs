//! `notes`: functions that a document declares for its own templates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Functions that templates may call, beside the built-in ones: under `functions`, or as the list alone.
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
    /// The functions. Their order doesn't count: each may call any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Note>,
}

/// A function of the document's own. It takes no arguments and sees what the calling template sees.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The name that templates call it by: a letter, then letters, digits and `_`.
    pub name: String,
    /// What it gives, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The template that is its value. It may call built-in functions and other notes.
    pub expression: String,
    /// `true` says that hiding a built-in function of the same name is meant. Default `false`.
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
