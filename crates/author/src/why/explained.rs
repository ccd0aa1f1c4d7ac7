//! The explanation of a field, as `ork why --output json` prints it.

use serde::Serialize;
use serde_json::Value;

/// Why a field is as it is.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// The custom resource: `Shop default/north`.
    pub resource: String,
    /// The child: `Deployment.apps default/north`.
    pub child: String,
    /// The field; empty for the whole child.
    pub field: String,
    /// The value that a pass gives it; none if it leaves the field out. `***` if it depends on a Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The value in the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<Value>,
    /// What the next pass does with the field.
    pub next: Next,
    /// Where the value comes from.
    pub origin: OriginWord,
    /// The expressions that render it.
    pub expressions: Vec<ShownExpression>,
    /// The entry that declares the child.
    pub entry: Place,
    /// The values that it depends on.
    pub inputs: Vec<ShownInput>,
    /// The field managers that hold it.
    pub managers: Vec<Manager>,
    /// True if the child is created once: the answer is how it would be created now.
    pub created_once: bool,
    /// True if the custom resource has more values than were tried.
    pub partial: bool,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum OriginWord {
    /// Expressions of a Katalog or Motif.
    Expressions,
    /// The entry, without an expression, or the kind.
    Entry,
    /// The object that the child is a copy of.
    Copy,
    /// Generated and kept.
    Generated,
    /// A mark of Orkestra.
    Mark,
}

/// What the next pass does with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Next {
    /// It creates the child.
    Creates,
    /// It writes the field.
    Writes,
    /// Nothing.
    Keeps,
    /// It cannot write the child: the API server or another owner refuses it.
    Refused,
}

/// The place of a part of a Katalog or Motif.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The file or document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The field.
    pub path: String,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownExpression {
    /// Its text.
    pub source: String,
    /// Its place.
    pub place: Place,
}

/// A value that a field depends on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownInput {
    /// Where it is: a path of the custom resource, or the object and the path.
    pub from: String,
    /// The value; none if it is not set. `***` if it is a Secret's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// True if it decides whether the child exists, and not the value of the field.
    pub decides_existence: bool,
}

/// A field manager.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// True if it applied the field; else it updated it.
    pub applies: bool,
    /// When it last wrote the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}
