//! Networking, scaling and disruption.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::config::Copies;
use crate::api::profiles::{Budget, NetworkRules};
use crate::api::scalar::{Scalar, Text};
use crate::value::Node;

/// A Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Name, metadata and handling. Default name: `<cr>-svc`.
    #[serde(flatten)]
    pub common: Common,
    /// `ClusterIP`, `NodePort` or `LoadBalancer`. Default `ClusterIP`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The port of the Service. Default: the selected workload's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// The port of the pods. Default: the Service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<Scalar>,
    /// `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// Several ports, instead of `port`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<ServicePort>,
    /// `true` gives the Service no address of its own. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// Labels of the pods. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, Text>>,
}

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// The port's name; several ports need one each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Text>,
    /// The port of the Service.
    pub port: Scalar,
    /// The port of the pods, a number or a name. Default: the Service's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port: Option<Scalar>,
    /// The port on every node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_port: Option<Scalar>,
    /// `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
}

/// An Ingress with one rule. Default name: `<cr>-ingress`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// Name, metadata and handling. Default name: `<cr>-ingress`.
    #[serde(flatten)]
    pub common: Common,
    /// The host that is served. Default: every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Text>,
    /// The Service that requests go to.
    pub service_name: Text,
    /// Its port, a number or a name.
    pub service_port: Scalar,
    /// The path that is served. Default `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// How `path` is compared: `Prefix`, `Exact` or `ImplementationSpecific`. Default `Prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_type: Option<Text>,
    /// The class of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<Text>,
    /// Encryption.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<IngressTls>,
}

/// Encryption of an Ingress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// The Secret with the certificate. Default: the controller's own certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<Text>,
    /// The hosts that it is for. Default: `host`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<Text>,
    /// `true` makes that Secret, with a certificate for the hosts that an authority of its own signs, and keeps it as
    /// `secrets[].tls` does: `secretName` is `<name of the Ingress>-tls` by default then. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<bool>,
}

/// A `NetworkPolicy`. Its name is needed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Name, metadata and handling. The name is needed.
    #[serde(flatten)]
    pub common: Common,
    /// Labels of the pods that it is about. Default: all pods of the namespace, as `{}` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<PodSelector>,
    /// Who may connect to whom.
    #[serde(flatten)]
    pub rules: NetworkRules,
    /// A profile that stands for the rules: a built-in one such as `deny-all`, or one of `profiles.networkPolicies`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// A policy to copy, by name, instead of the rules here: its whole `spec`. `patch` changes the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_network_policy: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// Labels of pods, plain or under `matchLabels`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSelector {
    /// The labels, as Kubernetes writes them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, Text>,
    /// The labels.
    #[serde(flatten)]
    pub labels: BTreeMap<String, Text>,
}

/// A `PodDisruptionBudget`; one of the bounds is given. Default name: `<cr>-pdb`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudget {
    /// Name, metadata and handling. Default name: `<cr>-pdb`.
    #[serde(flatten)]
    pub common: Common,
    /// Labels of the pods. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<BTreeMap<String, Text>>,
    /// The bounds.
    #[serde(flatten)]
    pub bounds: Budget,
    /// The bounds, or a profile that stands for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<BudgetBehavior>,
}

/// Bounds of a `PodDisruptionBudget`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BudgetBehavior {
    /// A profile: a built-in one such as `zero-downtime`, or one of `profiles.pdb`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// The bounds.
    #[serde(flatten)]
    pub bounds: Budget,
}

/// A `HorizontalPodAutoscaler` by CPU. Default name: `<cr>-hpa`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HorizontalPodAutoscaler {
    /// Name, metadata and handling. Default name: `<cr>-hpa`.
    #[serde(flatten)]
    pub common: Common,
    /// What is scaled. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_target_ref: Option<ScaleTarget>,
    /// The fewest pods. Default `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<Scalar>,
    /// The most pods; needed, unless the profile says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<Scalar>,
    /// The share of requested CPU to aim for, in percent. Default: the profile's, else `80`.
    #[serde(
        rename = "targetCPUUtilizationPercentage",
        skip_serializing_if = "Option::is_none"
    )]
    pub target_cpu_utilization_percentage: Option<Scalar>,
    /// How fast, or a profile that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<ScalingBehavior>,
}

/// What an autoscaler scales.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTarget {
    /// Its `apiVersion`. Default `apps/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Text>,
    /// Its kind. Default `Deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
    /// Its name.
    pub name: Text,
}

/// How fast an autoscaler scales.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingBehavior {
    /// A profile: a built-in one such as `web`, or one of `profiles.hpa`. What it says of numbers counts where the
    /// autoscaler itself says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// How fast there are more, as in a `HorizontalPodAutoscaler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub scale_up: Option<Node>,
    /// How fast there are fewer, as in a `HorizontalPodAutoscaler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub scale_down: Option<Node>,
}
