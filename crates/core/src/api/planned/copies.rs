//! Copies of policies, quotas and limits, and Secrets of Ingresses.

use schemars::JsonSchema;

use crate::api::children::Copies;
use crate::api::scalar::Text;

/// Further fields of a `NetworkPolicy`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NetworkPolicyLater {
    /// A policy to copy, by name.
    from_network_policy: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

/// Further fields of a `ResourceQuota`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResourceQuotaLater {
    /// A quota to copy, by name.
    from_resource_quota: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

/// Further fields of a `LimitRange`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LimitRangeLater {
    /// A limit range to copy, by name.
    from_limit_range: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

/// Further fields of the encryption of an Ingress.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct IngressTlsLater {
    /// `true` makes a Secret with a certificate that signs itself. Default `false`.
    create: Option<bool>,
}
