//! `Motif`: children, status fields, profiles and notes that Katalogs import. Each import provides its own inputs.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::SourceAuth;
use super::children::Lifecycle;
use super::envelope;
use super::info::Info;
use super::notes::Notes;
use super::operator_box::StatusField;
use super::profiles::Profiles;
use super::rules::Admission;
use super::shape::Shape;
use orkestra_object::value::Node;

/// Fields of `spec` that may stand beside it.
pub(crate) const BLOCKS: &[&str] = &[
    "admission",
    "imports",
    "inputs",
    "notes",
    "profiles",
    "resources",
    "status",
];

/// The specification of a Motif.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orkestra.orkspace.io",
    version = "v1",
    kind = "Motif",
    plural = "motifs",
    category = "orkestra",
    namespaced,
    schema = "disabled",
    doc = "A Motif is a reusable part of operators: Katalogs import it and set its inputs."
)]
#[serde(rename_all = "camelCase", default)]
pub struct MotifSpec {
    /// Author, version and other descriptive metadata for registries and users.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// A list of inputs, whose values an import sets under `with`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<MotifInput>,
    /// Children that are created for each custom resource of the importing operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<MotifResources>,
    /// Status fields of the importing operator's custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<MotifStatus>,
    /// Profiles for the importing Katalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Profiles>,
    /// A list of further Motifs that are part of this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<MotifImport>,
    /// Functions, for the templates of the Motif and of the Katalog that imports it under `spec.imports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// Rules for the custom resources of the importing operator. They are applied after the operator's own rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
}

/// One input of a Motif: `.inputs.<name>` in its templates, `inputs.<name>` in its conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MotifInput {
    /// Name of the input.
    pub name: String,
    /// A description for users.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// If `true`, an import must set the input. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The value if an import does not set the input. Must not be set for required inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub default: Option<Node>,
    /// Type of the value. Informational; it is not enforced. Default `string`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<InputType>,
}

/// The type of an input's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputType {
    /// Text.
    String,
    /// An integer.
    Int,
    /// `true` or `false`.
    Bool,
}

/// Children by block.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MotifResources {
    /// Children that are created once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_create: Option<Lifecycle>,
    /// Children that are kept as declared, as under `onReconcile` of the importing operator.
    #[serde(flatten)]
    pub on_reconcile: Lifecycle,
}

/// Status fields of custom resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MotifStatus {
    /// Fields to write, in order. It is an error if the operator or another Motif writes the same path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<StatusField>,
}

/// The import of a Motif.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MotifImport {
    /// Reference to the Motif: a path relative to this file, `oci://host/path:tag`, a Git URL `https://…@ref`, or
    /// `name@version` of the registry.
    pub motif: String,
    /// Tag, branch or commit, when `motif` has none. Default: `latest` of a registry, `main` of Git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// If `true`, `motif` is an OCI reference without `oci://`. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<bool>,
    /// Credentials for the registry or the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SourceAuth>,
    /// Values of the Motif's inputs, by name. Templates can read the custom resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub with: BTreeMap<String, Node>,
}

/// The shape of a whole Motif. `spec` may be left out: everything may stand beside it.
pub(crate) fn document_shape() -> Shape {
    envelope::without_spec(envelope::shape::<MotifSpec>(BLOCKS))
}
