//! Networking, scaling and disruption.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::children::Common;
use crate::api::children::Copies;
use crate::api::profiles::{Budget, NetworkRules};
use crate::api::scalar::{Scalar, Text};

/// Further fields of a Service.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServiceLater {
    /// Several ports, instead of `port`.
    ports: Option<Vec<ServicePort>>,
}

/// One port of a Service.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServicePort {
    /// The port's name; several ports need one each.
    name: Option<Text>,
    /// The port of the Service.
    port: Scalar,
    /// The port of the pods. Default: the Service's.
    target_port: Option<Scalar>,
    /// The port on every node.
    node_port: Option<Scalar>,
    /// `TCP`, `UDP` or `SCTP`. Default `TCP`.
    protocol: Option<Text>,
}

/// An Ingress with one rule. Default name: `<cr>-ingress`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ingress {
    #[serde(flatten)]
    common: Common,
    /// The host that is served.
    host: Option<Text>,
    /// The Service that requests go to.
    service_name: Option<Text>,
    /// Its port.
    service_port: Option<Scalar>,
    /// The path that is served. Default `/`.
    path: Option<Text>,
    /// How `path` is compared. Default `Prefix`.
    path_type: Option<Text>,
    /// The class of the controller.
    class_name: Option<Text>,
    /// Encryption.
    tls: Option<IngressTls>,
}

/// Encryption of an Ingress.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IngressTls {
    /// `true` makes a Secret with a certificate that signs itself. Default `false`.
    create: Option<bool>,
    /// The Secret with the certificate.
    secret_name: Option<Text>,
    /// The hosts that it is for. Default: `host`.
    hosts: Option<Vec<Text>>,
}

/// A `NetworkPolicy`. Its name is needed.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkPolicy {
    #[serde(flatten)]
    common: Common,
    /// Labels of the pods that it is about; `{}` is all.
    pod_selector: Option<PodSelector>,
    #[serde(flatten)]
    rules: NetworkRules,
    /// A profile that stands for the rules: a built-in one such as `deny-all`, or one of `profiles.networkPolicies`.
    profile: Option<Text>,
    /// A policy to copy, by name.
    from_network_policy: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

/// Labels of pods, plain or under `matchLabels`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodSelector {
    /// The labels, as Kubernetes writes them.
    match_labels: Option<BTreeMap<String, Text>>,
    #[serde(flatten)]
    labels: BTreeMap<String, Text>,
}

/// A `PodDisruptionBudget`; one of the bounds is given. Default name: `<cr>-pdb`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PodDisruptionBudget {
    #[serde(flatten)]
    common: Common,
    /// Labels of the pods.
    selector: Option<BTreeMap<String, Text>>,
    #[serde(flatten)]
    bounds: Budget,
    /// The bounds, or a profile that stands for them.
    behavior: Option<BudgetBehavior>,
}

/// Bounds of a `PodDisruptionBudget`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BudgetBehavior {
    /// A profile: a built-in one such as `zero-downtime`, or one of `profiles.pdb`.
    profile: Option<Text>,
    #[serde(flatten)]
    bounds: Budget,
}

/// A `HorizontalPodAutoscaler` by CPU. Default name: `<cr>-hpa`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HorizontalPodAutoscaler {
    #[serde(flatten)]
    common: Common,
    /// What is scaled.
    scale_target_ref: Option<ScaleTarget>,
    /// The fewest pods.
    min_replicas: Option<Scalar>,
    /// The most pods.
    max_replicas: Option<Scalar>,
    /// The share of requested CPU to aim for, in percent.
    #[serde(rename = "targetCPUUtilizationPercentage")]
    target_cpu_utilization_percentage: Option<Scalar>,
    /// How fast, or a profile that says so.
    behavior: Option<ScalingBehavior>,
}

/// What an autoscaler scales.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScaleTarget {
    /// Its `apiVersion`. Default `apps/v1`.
    api_version: Option<Text>,
    /// Its kind. Default `Deployment`.
    kind: Option<Text>,
    /// Its name.
    name: Text,
}

/// How fast an autoscaler scales.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScalingBehavior {
    /// A profile: a built-in one such as `web`, or one of `profiles.hpa`.
    profile: Option<Text>,
    /// How fast there are more, as in a `HorizontalPodAutoscaler`.
    scale_up: Option<serde_json::Value>,
    /// How fast there are fewer, as in a `HorizontalPodAutoscaler`.
    scale_down: Option<serde_json::Value>,
}
