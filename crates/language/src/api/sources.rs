//! `sources`: the locations of the Katalogs of a composition.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::auth::AuthType;
use super::duration::Span;
use orkestra_object::value::Node;

/// Sources of Katalogs. They are merged in the order registry, files, helm, git, configMaps, katalogs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sources {
    /// Artifacts of OCI registries.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registry: Vec<RegistrySource>,
    /// Files, by path relative to this one or by HTTPS URL. In a cluster, only URLs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSource>,
    /// Helm charts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<HelmSource>,
    /// Git repositories.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub git: Vec<GitSource>,
    /// `ConfigMaps` of the cluster.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<ConfigMapSource>,
    /// Katalogs of the cluster. They must be suspended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub katalogs: Vec<KatalogSource>,
}

/// One source, of any kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnySource<'a> {
    /// Of `registry`.
    Registry(&'a RegistrySource),
    /// Of `files`.
    File(&'a FileSource),
    /// Of `helm`.
    Helm(&'a HelmSource),
    /// Of `git`.
    Git(&'a GitSource),
    /// Of `configMaps`.
    ConfigMap(&'a ConfigMapSource),
    /// Of `katalogs`.
    Katalogs(&'a KatalogSource),
}

impl Sources {
    /// Returns each source with its list and its index there, in the order in which they are merged.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, usize, AnySource<'_>)> {
        fn list<'a, T>(
            name: &'static str,
            sources: &'a [T],
            any: fn(&'a T) -> AnySource<'a>,
        ) -> impl Iterator<Item = (&'static str, usize, AnySource<'a>)> {
            let each = sources.iter().enumerate();
            each.map(move |(index, source)| (name, index, any(source)))
        }
        let Self {
            registry,
            files,
            helm,
            git,
            config_maps,
            katalogs,
        } = self;
        list("registry", registry, AnySource::Registry)
            .chain(list("files", files, AnySource::File))
            .chain(list("helm", helm, AnySource::Helm))
            .chain(list("git", git, AnySource::Git))
            .chain(list("configMaps", config_maps, AnySource::ConfigMap))
            .chain(list("katalogs", katalogs, AnySource::Katalogs))
    }
}

/// An artifact of a registry.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySource {
    /// `host/path:version`, `host/path@version` or `host/path@sha256:…`, with or without `oci://`. `$NAME` is an environment
    /// variable. Without a version: `latest`.
    pub url: String,
    /// `false` if the registry is a Git repository with a folder for each Katalog of `katalog`. Default `true` without
    /// `katalog`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oci: Option<bool>,
    /// If `true`, the artifact's `komposer.yaml` is used instead of its Katalogs. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub use_komposer: Option<bool>,
    /// Katalogs of a registry that is a Git repository, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub katalog: BTreeMap<String, RegistryKatalog>,
    /// Credentials. Default: for files, those of `docker login`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SourceCredentials>,
    /// The interval at which the source is checked for a new revision. Default: `spec.interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// The signatures that the artifact must have. Default: those that the policy of the runtime requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
}

/// A Katalog of a registry that is a Git repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryKatalog {
    /// The branch. Default `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A file: its path or URL alone, or a URL with options.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum FileSource {
    /// Path or URL.
    Path(String),
    /// URL with options.
    Url(UrlSource),
}

/// A file with options.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UrlSource {
    /// Path, HTTPS URL or `$NAME` for an environment variable.
    pub url: String,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SourceCredentials>,
    /// The interval at which the source is checked for a new revision. Default: `spec.interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

/// A chart. Of the documents that it renders, Katalogs and Motifs are used.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmSource {
    /// The chart repository: an HTTPS URL, `oci://host/path`, or a Git URL that ends in `.git`.
    pub repo: String,
    /// The chart's name.
    pub chart: String,
    /// The chart's version, or a range such as `^1.2`. Default: the newest that is not a prerelease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The chart's folder in a Git repository. Default: the chart's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Files with values, in order: relative to this file, or files of the chart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_files: Vec<String>,
    /// Values; they take precedence over files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub values: Option<Node>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SourceCredentials>,
    /// The interval at which the source is checked for a new revision. Default: `spec.interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
    /// Signatures that the chart must have, if `repo` is a registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
}

/// A Git repository.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// HTTPS or `file://` URL of the repository. `$NAME` is an environment variable.
    pub url: String,
    /// Branch, tag or commit. Default `main`.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub ref_: Option<String>,
    /// A file, or a folder whose YAML files are used. Default `katalog.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<SourceCredentials>,
    /// The interval at which the source is checked for a new revision. Default: `spec.interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Span>,
}

/// A `ConfigMap` in the namespace of the Komposer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapSource {
    /// The `ConfigMap`'s name.
    pub name: String,
    /// The key in its data. Default: every key that ends in `.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Katalogs in the namespace of the Komposer, by name or by labels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KatalogSource {
    /// The Katalog's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Labels that the Katalogs must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<KatalogSelector>,
}

/// Selects Katalogs by labels: all of them must match.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct KatalogSelector {
    /// Labels with their values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<super::targets::LabelRequirement>,
}

/// Credentials for a source. They come from a Secret in the namespace of the Komposer, or from an environment variable that
/// the runtime permits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceCredentials {
    /// The authentication scheme. Default: as the type of the Secret says, else `bearer`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<AuthType>,
    /// The environment variable that holds the token, or `user:password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_env: Option<String>,
    /// A Secret of type `kubernetes.io/dockerconfigjson` or `kubernetes.io/basic-auth`, or one with `token`, or `username` and
    /// `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SourceSecret>,
}

/// A Secret in the namespace of the Komposer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceSecret {
    /// Name of the Secret.
    pub name: String,
    /// The key in its data. Default: the keys of the Secret's type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Cosign signatures that a source must have: of one of the keys, or of an identity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Verify {
    /// Public keys in PEM. A signature by one of them is sufficient.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// A Secret with public keys in PEM: `key`, or all keys that end in `.pub`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SourceSecret>,
    /// Signatures by certificates of an identity, without a key. With `keys`, either is sufficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keyless: Option<Keyless>,
}

/// Signatures by short-lived certificates of an identity.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Keyless {
    /// The issuer of the identity, such as `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// The identity: an e-mail address or URI; `*` stands for any text.
    pub subject: String,
    /// The trusted root: the content of a `trusted_root.json` of Sigstore, or certificates of authorities in PEM. Nothing is
    /// downloaded. If it has no transparency logs, signatures need no log entry, and certificates must be valid at present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_root: Option<String>,
    /// A Secret with the trusted root: `key`, or `trusted_root.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SourceSecret>,
}

impl Verify {
    /// Returns the Secrets that it names.
    pub fn secrets(&self) -> impl Iterator<Item = &SourceSecret> {
        let root = self.keyless.as_ref();
        let root = root.and_then(|keyless| keyless.secret_ref.as_ref());
        self.secret_ref.iter().chain(root)
    }
}

impl Sources {
    /// Returns the number of sources.
    pub fn len(&self) -> usize {
        let Self {
            registry,
            files,
            helm,
            git,
            config_maps,
            katalogs,
        } = self;
        registry.len() + files.len() + helm.len() + git.len() + config_maps.len() + katalogs.len()
    }

    /// True if there are no sources.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl KatalogSelector {
    /// True if it matches every Katalog.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }
}
