//! Config: copies, and Secrets that are made once.

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Where an object is copied from and to.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Copies {
    /// The namespace of the object that is copied. Default: the custom resource's.
    from_namespace: Option<Text>,
    /// Namespaces that get a copy each.
    to_namespaces: Option<Vec<Text>>,
}

/// Further fields of a `ConfigMap`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConfigMapLater {
    /// A `ConfigMap` to copy, by name. What `data` has wins.
    from_config_map: Option<Text>,
    /// A Secret to copy, by name. What `data` has wins.
    from_secret: Option<Text>,
    #[serde(flatten)]
    copies: Copies,
}

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

/// Further fields of a Secret.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretLater {
    #[serde(flatten)]
    copies: ConfigMapLater,
    /// `true` makes the Secret when it is missing and leaves it alone after that. Default `false`.
    once: Option<bool>,
    /// How old a Secret with `once` may become before it gets fresh values.
    rotate_after: Option<Span>,
    /// A certificate that signs itself, instead of `data`.
    tls: Option<SecretTls>,
}

/// A certificate that signs itself, under `tls.crt`, `tls.key` and `ca.crt`.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SecretTls {
    /// The certificate's common name.
    common_name: Option<Text>,
    /// The hosts that it is for.
    dns_names: Option<Vec<Text>>,
    /// How long it is valid. Default: `rotateAfter`, else a year.
    valid_for: Option<Span>,
}
