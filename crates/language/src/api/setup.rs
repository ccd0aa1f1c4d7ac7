//! `setup`: the objects that `ork run` applies and waits for before an operator starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use orkestra_object::value::Node;

/// Manifests that `ork run` applies before the operator starts, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Setup {
    /// A list of files.
    Files(Vec<SetupFile>),
    /// Files under `apply`, charts, and the objects to wait for.
    Steps(SetupSteps),
}

/// Steps that `ork run` performs before the operator starts: first `apply`, then `helm`, then `wait`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SetupSteps {
    /// A list of manifests to apply, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<SetupFile>,
    /// A list of charts to install, in order. A chart is a folder or an archive next to the Katalog, or comes from a repository or
    /// a registry.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<HelmChart>,
    /// A list of objects that must exist before the definition is applied.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wait: Vec<SetupWait>,
}

/// A manifest of `setup`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum SetupFile {
    /// The path of the file, relative to the Katalog.
    Path(String),
    /// The path, and the objects to wait for after it is applied.
    Manifest(SetupManifest),
}

/// A manifest of `setup`, and the objects to wait for after it is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupManifest {
    /// The path of the file, relative to the Katalog.
    pub path: String,
    /// A list of objects that must exist before `ork run` continues.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait: Vec<SetupWait>,
}

/// An object that `setup` waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupWait {
    /// API group and version, such as `cert-manager.io/v1`. Optional for built-in kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object. Default: the namespace of your kubeconfig's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// If `true`, also waits until the object is ready. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// The time to wait before `ork run` fails. Default `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// A Helm chart to install.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChart {
    /// URL of the chart repository. Not set for a local chart, or if `chart` is a reference of a registry (`oci://…`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Name of the chart in `repo`, a reference of a registry (`oci://…`), or the path of a local chart, relative to this file.
    pub chart: String,
    /// Name of the release. Default: the last part of `chart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Namespace of the release. Default `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Version of the chart, or a range such as `^1.2`. Default: the newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Files with values, relative to this file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_files: Vec<String>,
    /// Values. They take precedence over those of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub values: Option<Node>,
    /// If `true`, the namespace is created. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<bool>,
    /// A list of objects that must exist before the next chart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait: Vec<SetupWait>,
}

impl Setup {
    /// The manifests, in order.
    pub fn files(&self) -> &[SetupFile] {
        match self {
            Self::Files(files) => files,
            Self::Steps(steps) => &steps.apply,
        }
    }

    /// The charts, in order.
    pub fn charts(&self) -> &[HelmChart] {
        match self {
            Self::Files(_) => &[],
            Self::Steps(steps) => &steps.helm,
        }
    }

    /// What is waited for after all of them.
    pub fn wait(&self) -> &[SetupWait] {
        match self {
            Self::Files(_) => &[],
            Self::Steps(steps) => &steps.wait,
        }
    }
}

impl SetupFile {
    /// The path of the file, relative to the Katalog.
    pub fn path(&self) -> &str {
        match self {
            Self::Path(path) => path,
            Self::Manifest(manifest) => &manifest.path,
        }
    }

    /// What is waited for once it is applied.
    pub fn wait(&self) -> &[SetupWait] {
        match self {
            Self::Path(_) => &[],
            Self::Manifest(manifest) => &manifest.wait,
        }
    }
}
