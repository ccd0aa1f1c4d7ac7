//! `Motif`: children, status fields, profiles and notes that Katalogs import with inputs of their own.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::envelope;
use super::lifecycle::Deprecation;
use super::notes::Notes;
use super::operator_box::{Lifecycle, StatusField};
use super::profiles::Profiles;
use super::rules::Admission;
use super::shape::Shape;
use crate::value::Node;

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

/// What a Motif gives to those that import it.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "orkestra.orkspace.io",
    version = "v1",
    kind = "Motif",
    plural = "motifs",
    category = "orkestra",
    namespaced,
    schema = "disabled",
    doc = "A Motif is a part of operators: Katalogs import it with inputs of their own."
)]
#[serde(rename_all = "camelCase", default)]
pub struct MotifSpec {
    /// Author, version and the like, for registries and people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<Info>,
    /// What an import may or must give, under `with`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<MotifInput>,
    /// Children for each custom resource of the importing operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<MotifResources>,
    /// What is written to the status of the importing operator's custom resources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<MotifStatus>,
    /// Profiles, for the Katalog that imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiles: Option<Profiles>,
    /// Further Motifs that this one is made of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub imports: Vec<MotifImport>,
    /// Functions, for the templates of the Motif and of the Katalog that imports it under `spec.imports`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<Notes>,
    /// Rules for the custom resources of the importing operator; they follow on its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
}

/// One input of a Motif: `.inputs.<name>` in its templates, `inputs.<name>` in its conditions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MotifInput {
    /// The name.
    pub name: String,
    /// What it is for; shown to people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Whether an import must give it. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The value when an import gives none. Not for required inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub default: Option<Node>,
    /// What the value is, for people; it is not enforced. Default `string`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<InputType>,
}

/// What the value of an input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum InputType {
    /// Text.
    String,
    /// A whole number.
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

/// What is written to the status of custom resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MotifStatus {
    /// Fields to write, in order. A path that the operator or another Motif writes too is an error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<StatusField>,
}

/// The import of a Motif.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MotifImport {
    /// Where the Motif is: a path relative to this file, `oci://host/path:tag`, a Git URL `https://…@ref`, or
    /// `name@version` of the registry.
    pub motif: String,
    /// Tag, branch or commit, when `motif` has none. Default: `latest` of a registry, `main` of Git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `true` says that `motif` is an OCI reference without `oci://`. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<bool>,
    /// Credentials for the registry or the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SourceAuth>,
    /// Values of the Motif's inputs, by name. Templates see the custom resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub with: BTreeMap<String, Node>,
}

/// Credentials for a source of documents. They come from the environment or from a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceAuth {
    /// How they are shown to the server. Default `bearer`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<AuthType>,
    /// The environment variable that holds the token, or `user:password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// The key of a Secret that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// How credentials are shown to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AuthType {
    /// A token.
    Bearer,
    /// User and password.
    Basic,
    /// A token of GitHub.
    Github,
}

/// A key of a Secret.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// The Secret's name.
    pub name: String,
    /// Its namespace. Default: the document's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The key in its data.
    pub key: String,
}

/// What registries and people are told about a document. Nothing depends on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    /// Who wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub author: Option<Node>,
    /// Its version, as in semantic versioning; the tag of the artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its licence, as an SPDX expression.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub license: Option<String>,
    /// Words to find it by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// The cluster, as pages call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster_name: Option<String>,
    /// Written by tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// Written by tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub projects: Option<Node>,
    /// Why the document is deprecated, and what replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deprecation: Option<Deprecation>,
}

/// The shape of a whole Motif. `spec` may be left out: everything may stand beside it.
pub(crate) fn document_shape() -> Shape {
    envelope::without_spec(envelope::shape::<MotifSpec>(BLOCKS))
}
