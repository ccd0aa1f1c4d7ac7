//! `Komposer`: Katalogs put together from sources.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::security::{Notification, Provider};
use crate::api::Security;
use crate::api::envelope;
use crate::api::katalog::CrdEntry;
use crate::api::motif::{Info, SourceAuth};
use crate::api::shape::Shape;

/// Fields of `spec` that may stand beside it.
pub(crate) const BLOCKS: &[&str] = &[
    "imports",
    "notification",
    "providers",
    "security",
    "sources",
];

/// The shape of a whole Komposer.
pub(crate) fn document_shape() -> Shape {
    envelope::shape::<KomposerSpec>(BLOCKS)
}

/// What a Komposer declares.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KomposerSpec {
    /// Author, version and the like, for registries and people. A file may have them in `metadata`.
    info: Option<Info>,
    /// Where the Katalogs come from.
    sources: Option<Sources>,
    /// What is changed in the operators of the sources, by name.
    crds: Option<BTreeMap<String, CrdEntry>>,
    /// Protection and webhooks; they win over those of the sources.
    security: Option<Security>,
    /// Providers; those of the sources count beside them.
    providers: Option<Vec<Provider>>,
    /// Who is told when something fails.
    notification: Option<Notification>,
}

/// Where Katalogs come from.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Sources {
    /// Registries.
    registry: Option<Vec<RegistrySource>>,
    /// Files, by path relative to this one or URL.
    files: Option<Vec<FileSource>>,
    /// Charts.
    helm: Option<Vec<HelmSource>>,
    /// Repositories.
    git: Option<Vec<GitSource>>,
    /// `ConfigMaps` of the cluster.
    config_maps: Option<Vec<ConfigMapSource>>,
    /// Katalogs of the cluster.
    katalogs: Option<Vec<KatalogSource>>,
}

/// An artifact of a registry.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistrySource {
    /// `host/path:version` or `host/path@version`.
    url: String,
    /// `true` says that it is an OCI registry. Default `false`.
    oci: Option<bool>,
    /// Credentials.
    auth: Option<SourceAuth>,
    /// `true` takes the artifact's Komposer instead of its Katalog. Default `false`.
    use_komposer: Option<bool>,
    /// Katalogs of a registry that is a repository, by name.
    katalog: Option<BTreeMap<String, RegistryKatalog>>,
}

/// A Katalog of a registry that is a repository.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RegistryKatalog {
    /// The branch. Default `main`.
    branch: Option<String>,
}

/// A file: its path or URL alone, or with credentials.
#[derive(JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub(crate) enum FileSource {
    /// Path or URL.
    Path(String),
    /// URL with credentials.
    Url(UrlSource),
}

/// A file with credentials.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UrlSource {
    /// Where it is.
    url: String,
    /// Credentials.
    auth: Option<SourceAuth>,
}

/// A chart; of what it renders, Katalogs count.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HelmSource {
    /// The repository.
    repo: String,
    /// The chart's name.
    chart: String,
    /// The chart's version.
    version: Option<String>,
    /// The chart's folder in a Git repository.
    path: Option<String>,
    /// Files with values, in order.
    value_files: Option<Vec<String>>,
    /// Values; they win over files.
    values: Option<serde_json::Value>,
    /// Credentials.
    auth: Option<SourceAuth>,
}

/// A Git repository.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GitSource {
    /// Its URL.
    url: String,
    /// Branch, tag or commit. Default `main`.
    #[serde(rename = "ref")]
    ref_: Option<String>,
    /// The file. Default `katalog.yaml`.
    path: Option<String>,
    /// Credentials.
    auth: Option<SourceAuth>,
}

/// A key of a `ConfigMap`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigMapSource {
    /// The `ConfigMap`'s name.
    name: String,
    /// Its namespace. Default: the Komposer's.
    namespace: Option<String>,
    /// The key in its data. Default `katalog.yaml`.
    key: Option<String>,
}

/// Katalogs of the cluster, by name or labels.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KatalogSource {
    /// The Katalog's name.
    name: Option<String>,
    /// Its namespace. Default: the Komposer's.
    namespace: Option<String>,
    /// Its labels.
    match_labels: Option<BTreeMap<String, String>>,
}
