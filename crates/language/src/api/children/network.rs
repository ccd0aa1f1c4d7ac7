//! Networking, scaling and disruption.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::Common;
use super::config::Copies;
use crate::api::or_template::OrTemplate;
use crate::api::scalar::{Scalar, Text};
use orkestra_object::value::Node;

/// A Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Name, metadata and handling. Default name: `<cr>-svc`.
    #[serde(flatten)]
    pub common: Common,
    /// Type of the Service: `ClusterIP`, `NodePort` or `LoadBalancer`. Default `ClusterIP`.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<Text>,
    /// The port of the Service. Default: the selected workload's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<Scalar>,
    /// The port of the pods. Default: the Service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_port: Option<Scalar>,
    /// Protocol of the port: `TCP`, `UDP` or `SCTP`. Default `TCP`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Text>,
    /// A list of ports, instead of `port`.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub ports: OrTemplate<Vec<ServicePort>>,
    /// If `true`, the Service is headless: it has no cluster IP. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// Labels of the selected pods. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<OrTemplate<BTreeMap<String, Text>>>,
}

/// One port of a Service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServicePort {
    /// Name of the port. Required if there are several ports.
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
    /// Protocol of the port: `TCP`, `UDP` or `SCTP`. Default `TCP`.
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
    /// The host that the rule applies to. Default: every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Text>,
    /// Name of the Service that receives the requests.
    pub service_name: Text,
    /// Port of the Service, as a number or a name.
    pub service_port: Scalar,
    /// The path that the rule applies to. Default `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<Text>,
    /// Specifies how `path` is matched: `Prefix`, `Exact` or `ImplementationSpecific`. Default `Prefix`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_type: Option<Text>,
    /// Name of the `IngressClass`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_name: Option<Text>,
    /// TLS configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<OrTemplate<IngressTls>>,
}

/// TLS configuration of an Ingress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// Name of the Secret that holds the certificate. Default: the controller's own certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<Text>,
    /// A list of hosts that the certificate is valid for. Default: `host`.
    #[serde(skip_serializing_if = "OrTemplate::is_absent")]
    pub hosts: OrTemplate<Vec<Text>>,
    /// If `true`, creates the Secret with a certificate for the hosts, signed by its own certificate authority, and maintains
    /// it as `secrets[].tls` does. `secretName` then defaults to `<name of the Ingress>-tls`. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create: Option<bool>,
}

/// A `NetworkPolicy`. The name is required.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Name, metadata and handling. The name is required.
    #[serde(flatten)]
    pub common: Common,
    /// Labels of the pods that the policy applies to; `{}` selects all pods of the namespace. Default: the workload of the same
    /// name, or the only one. Required with a namespace of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<OrTemplate<PodSelector>>,
    /// Ingress and egress rules.
    #[serde(flatten)]
    pub rules: NetworkRules,
    /// A profile that provides the rules: a built-in one such as `deny-all`, or one of `profiles.networkPolicies`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Name of a `NetworkPolicy` whose `spec` is copied, instead of the rules here. `patch` changes the copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_network_policy: Option<Text>,
    /// From where and to where it is copied.
    #[serde(flatten)]
    pub copies: Copies,
}

/// Rules of a network policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkRules {
    /// A list of ingress rules. `[]` denies all ingress. Labels of peers are written as plain maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrTemplate<Vec<serde_json::Value>>>")]
    pub ingress: Option<OrTemplate<Vec<Node>>>,
    /// A list of egress rules. `[]` denies all egress. Labels of peers are written as plain maps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OrTemplate<Vec<serde_json::Value>>>")]
    pub egress: Option<OrTemplate<Vec<Node>>>,
    /// The policy types that apply: `Ingress`, `Egress` or both. Default: those that are declared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_types: Option<OrTemplate<Vec<Text>>>,
}

/// Labels of pods, plain or under `matchLabels`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSelector {
    /// Labels in the form of a Kubernetes label selector.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, Text>,
    /// The labels.
    #[serde(flatten)]
    pub labels: BTreeMap<String, Text>,
}

/// A `PodDisruptionBudget`; one of the bounds must be set. Default name: `<cr>-pdb`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudget {
    /// Name, metadata and handling. Default name: `<cr>-pdb`.
    #[serde(flatten)]
    pub common: Common,
    /// Labels of the selected pods. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<OrTemplate<BTreeMap<String, Text>>>,
    /// The bounds.
    #[serde(flatten)]
    pub bounds: Budget,
    /// The bounds, or a profile that provides them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<BudgetBehavior>,
}

/// The number of pods that can be unavailable. One of the two fields must be set.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// The minimum number of available pods, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<Scalar>,
    /// The maximum number of unavailable pods, as a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Scalar>,
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
    /// The workload to scale. Default: the workload of the same name, or the only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_target_ref: Option<OrTemplate<ScaleTarget>>,
    /// The minimum number of pods. Default `1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<Scalar>,
    /// The maximum number of pods. Required unless the profile sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<Scalar>,
    /// The target average CPU utilization, as a percentage of the requested CPU. Default: the profile's, else `80`.
    #[serde(
        rename = "targetCPUUtilizationPercentage",
        skip_serializing_if = "Option::is_none"
    )]
    pub target_cpu_utilization_percentage: Option<Scalar>,
    /// The scaling behavior, or a profile that provides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<OrTemplate<ScalingBehavior>>,
}

/// The workload that an autoscaler scales.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleTarget {
    /// `apiVersion` of the workload. Default `apps/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<Text>,
    /// Kind of the workload. Default `Deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Text>,
    /// Name of the workload.
    pub name: Text,
}

/// The scaling behavior of an autoscaler.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ScalingBehavior {
    /// A profile: a built-in one such as `web`, or one of `profiles.hpa`. Its numbers apply where the autoscaler does not set
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Text>,
    /// Scaling policy for scaling up, as in a `HorizontalPodAutoscaler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub scale_up: Option<Node>,
    /// Scaling policy for scaling down, as in a `HorizontalPodAutoscaler`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub scale_down: Option<Node>,
}
