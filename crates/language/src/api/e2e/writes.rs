//! Calls of `kubectl` that change objects.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Assertions;
use super::pod::PodChoice;
use orkestra_object::value::Node;

/// A manifest to apply: `file` or `inline`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Apply {
    /// A file with manifests, relative to the document.
    pub file: Option<String>,
    /// The manifest: a map, or text with any number of documents.
    #[schemars(with = "Option<serde_json::Value>")]
    pub inline: Option<Node>,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The expected exit code. A value other than `0` expects the call to fail. Default `0`.
    #[schemars(range(min = 0, max = 255))]
    pub exit_code: Option<i32>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// An object to patch.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// Kind or resource, such as `Deployment` or `certificates.cert-manager.io`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Type of the patch. Default `merge`.
    #[serde(rename = "type")]
    pub type_: Option<PatchType>,
    /// The patch: a map or a list, or text with either.
    #[schemars(with = "serde_json::Value")]
    pub patch: Node,
    /// The expected exit code. A value other than `0` expects the call to fail. Default `0`.
    #[schemars(range(min = 0, max = 255))]
    pub exit_code: Option<i32>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// The type of a patch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PatchType {
    /// A JSON merge patch.
    #[default]
    Merge,
    /// A strategic merge patch; only for built-in kinds.
    Strategic,
    /// A list of JSON patch operations.
    Json,
}

impl PatchType {
    /// As documents and `kubectl` write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Strategic => "strategic",
            Self::Json => "json",
        }
    }
}

/// A workload to restart.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Restart {
    /// Kind of the workload. Default `Deployment`.
    pub kind: Option<String>,
    /// Name of the workload.
    pub name: String,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// If `true`, also waits until the rollout is complete. Default `true`.
    pub ready: Option<bool>,
}

/// A workload to scale.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Scale {
    /// Kind of the workload. Default `Deployment`.
    pub kind: Option<String>,
    /// Name of the workload.
    pub name: String,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The number of replicas.
    #[schemars(range(min = 0))]
    pub replicas: u32,
    /// If `true`, also waits until the rollout is complete. Default `true`.
    pub ready: Option<bool>,
}

/// Objects to delete: those of `file`, or of `kind` with a name or labels.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Delete {
    /// A file with manifests, relative to the document.
    pub file: Option<String>,
    /// Kind or resource. Required with `name` and `labelSelector`; the holder of a Lease is a Pod, unless this is set.
    pub kind: Option<String>,
    /// The objects.
    #[serde(flatten)]
    pub pod: PodChoice,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// If `true`, succeeds if the object does not exist. Default `false`.
    pub ignore_not_found: Option<bool>,
    /// The expected exit code. A value other than `0` expects the call to fail. Default `0`.
    #[schemars(range(min = 0, max = 255))]
    pub exit_code: Option<i32>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}
