//! `setup`: what `ork run` applies, and what it waits for, before an operator starts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::duration::Span;
use crate::value::Node;

/// Manifests that `ork run` applies before the operator starts, in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Setup {
    /// Files alone.
    Files(Vec<SetupFile>),
    /// Files under `apply`, and what is waited for after them.
    Steps(SetupSteps),
}

/// What `ork run` does before the operator starts: first `apply`, then `helm`, then `wait`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SetupSteps {
    /// Manifests to apply, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub apply: Vec<SetupFile>,
    /// Charts to install, in order. The chart is a folder or an archive beside the Katalog.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub helm: Vec<HelmChart>,
    /// Objects that must exist before the definition is applied.
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
    /// The path, and what is waited for once it is applied.
    Manifest(SetupManifest),
}

/// A manifest of `setup`, and what is waited for once it is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupManifest {
    /// The path of the file, relative to the Katalog.
    pub path: String,
    /// Objects that must exist before `ork run` goes on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wait: Vec<SetupWait>,
}

/// An object that `setup` waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetupWait {
    /// API group and version, such as `cert-manager.io/v1`. Not needed for kinds of Kubernetes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind, such as `Deployment`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object. Default: the namespace of your kubeconfig's context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// `true` also waits until the object is ready. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// How long to wait before `ork run` fails. Default `30s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// A Helm chart to install.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChart {
    /// Address of the chart's repository. A local chart and one of an OCI registry have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// Name of the chart, or the path of a local one, relative to this file and beginning with `.` or `/`.
    pub chart: String,
    /// Name of the release. Default: the last part of `chart`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
    /// Namespace of the release. Default `default`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Version of the chart. Default: the newest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Files with values, relative to this file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub value_files: Vec<String>,
    /// Values; they win over those of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, serde_json::Value>>")]
    pub values: Option<Node>,
    /// `true` creates the namespace. Default `false`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_namespace: Option<bool>,
    /// Objects that must exist before the next chart.
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
