//! `security`: protection, webhooks and conversion for a whole Katalog, and the fields of an entry that override it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deletion protection, namespace protection and webhooks. All share one server and one certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Security {
    /// Name of the Service that webhooks call. Default `orkestra`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// URL of a gateway that is not a Service of the cluster. Webhooks call it instead of the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_endpoint: Option<String>,
    /// Rejects the deletion of custom resource definitions, of custom resources and of Orkestra itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<DeletionProtection>,
    /// Rejects custom resources and their children in some namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_protection: Option<NamespaceProtection>,
    /// The webhooks of `validation`, `mutation` and `normalize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
    /// The conversion between versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<ConversionServer>,
}

/// Rejects the deletion of custom resource definitions, of custom resources and of Orkestra itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionProtection {
    /// If `false`, the protection is disabled. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// If `true`, the protection and the certificates are removed when Orkestra stops. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_shutdown: Option<bool>,
    /// The result while the protection cannot be evaluated. Default `Fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// If `true`, the label `orkestra.io/deletion-protection` alone does not remove the protection of an object. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_mode: Option<bool>,
}

/// Rejects custom resources and their children in some namespaces. `restrictedNamespaces` and `allowedNamespaces` are mutually
/// exclusive. The lists of an entry apply in addition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceProtection {
    /// If `false`, the protection is disabled. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// A list of namespaces in which custom resources are rejected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted_namespaces: Vec<String>,
    /// A list of the only namespaces in which custom resources are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_namespaces: Vec<String>,
    /// The result while the protection cannot be evaluated. Default `Fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// If `true`, the protection is removed when Orkestra stops. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_shutdown: Option<bool>,
}

/// The webhooks of `validation`, `mutation` and `normalize`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhooks {
    /// Specifies whether `validation`, `mutation` and `normalize` apply when a custom resource is written. In reconcile passes
    /// they always apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Switch>,
    /// The result while the webhook of `validation` cannot be reached. Default `Fail`. A mutation that cannot be applied is
    /// always skipped: reconcile passes apply it in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// Name of the Service that the webhooks call. Default: that of `security`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// If `true`, the webhooks are removed when Orkestra stops. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_shutdown: Option<bool>,
}

/// The enforcement of rules when a custom resource is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Switch {
    /// If not set, policies of the API server enforce the rules that CEL can express, and only reconcile passes apply the others. If
    /// `true`, the webhook enforces the others; this is the default if the gateway runs with `ENABLE_ADMISSION_WEBHOOK=true`. If
    /// `false`, only reconcile passes apply rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// The conversion between versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversionServer {
    /// If `true`, `/convert` is served. Default: `true` if the gateway runs with `ENABLE_CONVERSION=true`, else `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// The number of conversions that statistics cover. Default `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1_000_000))]
    pub conversion_window: Option<u32>,
}

/// The result of a request while a webhook cannot be reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// The request is rejected.
    #[default]
    Fail,
    /// The request is accepted.
    Ignore,
}

impl FailurePolicy {
    /// Returns the word of Kubernetes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "Fail",
            Self::Ignore => "Ignore",
        }
    }
}

/// The admission webhooks for the custom resources of an entry.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EntryWebhooks {
    /// If `false`, `validation` applies in reconcile passes only. Default: `true` if there are rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<bool>,
    /// If `false`, `mutation` and `normalize` apply in reconcile passes only. Default: `true` if there are rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutation: Option<bool>,
    /// The operations to which `validation` applies; `mutation` applies to those that are not `DELETE`. Default
    /// `[CREATE, UPDATE]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operations: Option<Vec<Operation>>,
}

/// An operation on an object.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    /// The object is created.
    Create,
    /// The object is changed.
    Update,
    /// The object is deleted.
    Delete,
}

impl Operation {
    /// Returns the word of Kubernetes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// The protection of an entry's objects against deletion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EntryProtection {
    /// If `true`, the custom resource definition is protected. Default `true`.
    #[serde(rename = "protectCRD", skip_serializing_if = "Option::is_none")]
    pub protect_crd: Option<bool>,
    /// If `true`, custom resources are protected. Default `true`.
    #[serde(rename = "protectCRs", skip_serializing_if = "Option::is_none")]
    pub protect_crs: Option<bool>,
    /// If `true`, the label `orkestra.io/deletion-protection` alone does not remove the protection of an object. Default: that of
    /// `security.deletionProtection`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_mode: Option<bool>,
}
