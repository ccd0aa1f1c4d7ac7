//! The `kubectl` block of an E2E: calls of the program `kubectl`, and assertions on their output.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::Assertions;
use super::pod::{LeaderElection, PodChoice};
use super::writes::{Apply, Delete, Patch, Restart, Scale};
use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Calls of `kubectl`. They run in this order: `apply`, `patch`, `restart`, `scale`, `delete`, then `get`, `logs`, `describe`,
/// `exec`, `portForward`, `events`, `auth`, `cp` and `top`. The first five run until their own assertions hold, and are then
/// not repeated. The others are repeated until all hold together.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Kubectl {
    /// Manifests to apply.
    pub apply: Vec<Apply>,
    /// Objects to patch.
    pub patch: Vec<Patch>,
    /// Workloads to restart.
    pub restart: Vec<Restart>,
    /// Workloads to scale.
    pub scale: Vec<Scale>,
    /// Objects to delete.
    pub delete: Vec<Delete>,
    /// Objects, or fields of them, to read.
    pub get: Vec<Get>,
    /// Logs to read.
    pub logs: Vec<Logs>,
    /// Objects to describe.
    pub describe: Vec<Describe>,
    /// Commands to run in containers.
    pub exec: Vec<Exec>,
    /// HTTP requests to make through a forwarded port.
    pub port_forward: Vec<PortForward>,
    /// Events of an object to read.
    pub events: Vec<Events>,
    /// A list of permissions to check.
    pub auth: Vec<Auth>,
    /// Files to read from containers.
    pub cp: Vec<Copy>,
    /// Resource usage to read. Requires a metrics server in the cluster.
    pub top: Vec<Top>,
}

/// Objects, or a field of them, to read. An object that does not exist has no output.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Get {
    /// Kind or resource, such as `Deployment` or `certificates.cert-manager.io`.
    pub kind: String,
    /// Name of the object. Default: all that `labelSelector` selects.
    pub name: Option<String>,
    /// Labels of the objects, as in `app=web`.
    pub label_selector: Option<String>,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// A `JSONPath` expression, such as `.status.phase` or `{.items[*].metadata.name}`. Default: the whole object.
    pub field: Option<String>,
    /// Format of the whole object. Default `json`.
    pub format: Option<Format>,
    /// An expression of `jq` over the output, which must be JSON; needs the program `jq`.
    pub jq: Option<String>,
    /// The same over YAML.
    pub yq: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// Format of a whole object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Format {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// The names, with their resource.
    Name,
    /// The table that `kubectl get` prints, with all columns.
    Wide,
}

impl Format {
    /// As documents and `kubectl` write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Name => "name",
            Self::Wide => "wide",
        }
    }
}

/// Logs of Pods.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Logs {
    /// The Pod.
    #[serde(flatten)]
    pub pod: PodChoice,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The container. Default: the first one.
    pub container: Option<String>,
    /// The age of the oldest entries to read, such as `5m`. Default: everything.
    pub since: Option<Span>,
    /// An expression of `jq` over the output, which must be JSON; needs the program `jq`.
    pub jq: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// An object to describe.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Describe {
    /// Kind or resource, such as `Deployment` or `certificates.cert-manager.io`.
    pub kind: String,
    /// Name of the object. Default: all that `labelSelector` selects.
    pub name: Option<String>,
    /// Labels of the objects.
    pub label_selector: Option<String>,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// A command to run in a container.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Exec {
    /// The Pod.
    #[serde(flatten)]
    pub pod: PodChoice,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The container. Default: the first one.
    pub container: Option<String>,
    /// The program and its arguments.
    pub command: Vec<Text>,
    /// The expected exit code. A value other than `0` expects the call to fail. Default `0`.
    #[schemars(range(min = 0, max = 255))]
    pub exit_code: Option<i32>,
    /// An expression of `jq` over the output, which must be JSON; needs the program `jq`.
    pub jq: Option<String>,
    /// The same over YAML.
    pub yq: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// An HTTP request through a forwarded port. The output is the body of the response.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortForward {
    /// Name of the Service.
    pub service: Option<String>,
    /// Name of the Pod.
    pub pod: Option<String>,
    /// The Pod that holds a Lease.
    pub leader_election: Option<LeaderElection>,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The port of the Service or Pod.
    #[schemars(range(min = 1, max = 65535))]
    pub port: u16,
    /// Path and query. Default `/`.
    pub path: Option<String>,
    /// HTTP method. Default `GET`.
    pub method: Option<String>,
    /// HTTP headers.
    #[serde(default)]
    pub headers: BTreeMap<String, Text>,
    /// Body of the request; `$NAME` and `${NAME}` are replaced by environment variables.
    pub body: Option<Text>,
    /// The delay before the request. Default `0s`.
    pub wait: Option<Span>,
    /// The expected HTTP status. Default: any below 400.
    #[schemars(range(min = 100, max = 599))]
    pub status_code: Option<u16>,
    /// An expression of `jq` over the output, which must be JSON; needs the program `jq`.
    pub jq: Option<String>,
    /// The same over YAML.
    pub yq: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// Events of an object.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Events {
    /// Kind of the object, such as `Website`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// A permission to check. The output is `yes` or `no`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// The verb, such as `create`.
    pub verb: String,
    /// The resource, such as `deployments.apps`.
    pub resource: String,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The user whose permission is checked. Default: the user of the kubeconfig.
    #[serde(rename = "as")]
    pub as_: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// A file to read from a container, with `kubectl cp`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Copy {
    /// The Pod.
    #[serde(flatten)]
    pub pod: PodChoice,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// The container. Default: the first one.
    pub container: Option<String>,
    /// Path of the file in the container.
    pub src: String,
    /// An expression of `jq` over the output, which must be JSON; needs the program `jq`.
    pub jq: Option<String>,
    /// The same over YAML.
    pub yq: Option<String>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// CPU and memory usage.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Top {
    /// The kind of object to measure. Default `pod`.
    pub kind: Option<TopKind>,
    /// Name of the Pod or Node. Default: all.
    pub name: Option<String>,
    /// Labels of the Pods or Nodes.
    pub label_selector: Option<String>,
    /// Namespace. Default: the namespace of the kubeconfig's context.
    pub namespace: Option<String>,
    /// If `true`, measures each container of Pods. Default `false`.
    pub containers: Option<bool>,
    /// Assertions on the output.
    #[serde(flatten)]
    pub assertions: Assertions,
}

/// The kind of object to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TopKind {
    /// Pods.
    #[default]
    Pod,
    /// Nodes.
    Node,
}

impl TopKind {
    /// As documents and `kubectl` write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Node => "node",
        }
    }
}
