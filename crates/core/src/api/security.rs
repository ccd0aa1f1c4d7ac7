//! `security`: protection, webhooks and conversion, for the whole Katalog; and the fields of an entry that refine it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Protection and webhooks. All share one server and one certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Security {
    /// The Service that webhooks call. Default `orkestra`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// URL of a gateway outside of the cluster's Services; webhooks call it instead of the Service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_endpoint: Option<String>,
    /// Refuses the deletion of definitions, of custom resources and of Orkestra itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_protection: Option<DeletionProtection>,
    /// Refuses custom resources, and their children, in some namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_protection: Option<NamespaceProtection>,
    /// The webhooks of `validation`, `mutation` and `normalize`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhooks: Option<Webhooks>,
    /// The conversion between versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<ConversionServer>,
}

/// Refuses the deletion of definitions, of custom resources and of Orkestra itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DeletionProtection {
    /// `false` turns it off. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// `true` removes the protection, and the certificates, when Orkestra stops. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_shutdown: Option<bool>,
    /// The result while the protection cannot be evaluated. Default `Fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// `true` also refuses to remove the label that protects an object. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_mode: Option<bool>,
}

/// Refuses custom resources, and their children, in some namespaces. `restrictedNamespaces` and `allowedNamespaces` exclude
/// each other. The lists of an entry count beside these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NamespaceProtection {
    /// `false` turns it off. Default `true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Namespaces in which custom resources are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub restricted_namespaces: Vec<String>,
    /// The only namespaces in which custom resources are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_namespaces: Vec<String>,
    /// The result while the protection cannot be evaluated. Default `Fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// `true` removes the protection when Orkestra stops. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_shutdown: Option<bool>,
}

/// The webhooks of `validation`, `mutation` and `normalize`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Webhooks {
    /// Whether `validation`, `mutation` and `normalize` apply when a custom resource is written. In passes they apply in any
    /// case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Switch>,
    /// The result while the webhook of `validation` cannot be reached. Default `Fail`. A mutation that cannot be applied is
    /// always left out: passes apply it in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_policy: Option<FailurePolicy>,
    /// The Service that they call. Default: that of `security`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_name: Option<String>,
    /// `true` removes the webhooks when Orkestra stops. Default `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup_on_shutdown: Option<bool>,
}

/// On or off.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Switch {
    /// `true` is on. Default: `true` if the gateway runs with `ENABLE_ADMISSION_WEBHOOK=true`, else `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// The conversion between versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ConversionServer {
    /// Whether `/convert` is served. Default: `true` if the gateway runs with `ENABLE_CONVERSION=true`, else `false`.
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
    /// The request is refused.
    #[default]
    Fail,
    /// The request passes.
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

/// The webhooks that the custom resources of an entry pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EntryWebhooks {
    /// `false` leaves `validation` to passes. Default: `true` if there are rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<bool>,
    /// `false` leaves `mutation` and `normalize` to passes. Default: `true` if there are rules.
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
    /// Whether the definition is protected. Default `true`.
    #[serde(rename = "protectCRD", skip_serializing_if = "Option::is_none")]
    pub protect_crd: Option<bool>,
    /// Whether custom resources are protected. Default `true`.
    #[serde(rename = "protectCRs", skip_serializing_if = "Option::is_none")]
    pub protect_crs: Option<bool>,
    /// Whether the label that protects cannot be removed. Default: that of `security.deletionProtection`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_mode: Option<bool>,
}
