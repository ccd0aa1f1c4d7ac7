//! Further blocks of a Katalog: protection, providers, messages.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Further blocks of a Katalog.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpecLater {
    /// Protection and webhooks.
    security: Option<Security>,
    /// Providers of resources outside of the cluster.
    providers: Option<Vec<Provider>>,
    /// Who is told when something fails.
    notification: Option<Notification>,
    /// The REST surface and other clusters.
    gateway: Option<serde_json::Value>,
    /// Whether others may read the resources through `cross`.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "each entry of `spec.crds` has its own `crossAccess`"))]
    cross_access: Option<bool>,
    /// What a registry asks of what it takes.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "it is for registries"))]
    policy: Option<serde_json::Value>,
    /// What is done when the document is published.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "it is for registries"))]
    publish: Option<serde_json::Value>,
}

/// Further blocks of a Komposer.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KomposerLater {
    /// Protection and webhooks. They take precedence over those of the sources.
    security: Option<Security>,
    /// Providers, in addition to those of the sources.
    providers: Option<Vec<Provider>>,
    /// Notifications. Teams are added to those of the sources.
    notification: Option<Notification>,
}

/// Protection and webhooks. All share one server and one certificate.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Security {
    /// The Service that webhooks call. Default `orkestra`.
    service_name: Option<String>,
    /// URL of the gateway beside the runtime.
    gateway_endpoint: Option<String>,
    /// Refuses to delete definitions and Orkestra itself.
    deletion_protection: Option<DeletionProtection>,
    /// Refuses resources in some namespaces.
    namespace_protection: Option<NamespaceProtection>,
    /// The webhooks of rules.
    webhooks: Option<Webhooks>,
    /// The conversion between versions.
    conversion: Option<ConversionServer>,
}

/// Refuses to delete definitions and Orkestra itself.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletionProtection {
    /// Whether it does. Default `true`.
    enabled: Option<bool>,
    /// `true` removes webhook and certificates when Orkestra stops. Default `false`.
    cleanup_on_shutdown: Option<bool>,
    /// What happens while the webhook cannot be reached. Default `Fail`.
    failure_policy: Option<FailurePolicy>,
    /// `true` also refuses to remove the label that protects. Default `false`.
    strict_mode: Option<bool>,
}

/// Refuses resources in some namespaces; one of the lists is given.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamespaceProtection {
    /// Whether it does. Default `true`.
    enabled: Option<bool>,
    /// Namespaces where they are refused.
    restricted_namespaces: Option<Vec<String>>,
    /// The only namespaces where they are not.
    allowed_namespaces: Option<Vec<String>>,
    /// What happens while the webhook cannot be reached. Default `Fail`.
    failure_policy: Option<FailurePolicy>,
    /// `true` removes the webhook when Orkestra stops. Default `false`.
    cleanup_on_shutdown: Option<bool>,
}

/// The webhooks of rules.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Webhooks {
    /// Whether `validation` and `mutation` act when a resource is applied.
    admission: Option<Switch>,
    /// What happens while the webhooks cannot be reached. Default `Fail`.
    failure_policy: Option<FailurePolicy>,
    /// The Service that they call. Default: that of `security`.
    service_name: Option<String>,
    /// `true` removes the webhooks when Orkestra stops. Default `false`.
    cleanup_on_shutdown: Option<bool>,
}

/// On or off.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Switch {
    /// `true` is on. Default `false`.
    enabled: Option<bool>,
}

/// The conversion between versions.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversionServer {
    /// Whether `/convert` is served. Default `false`.
    enabled: Option<bool>,
    /// Conversions that figures are over. Default `100`.
    #[schemars(range(min = 1, max = 1_000_000))]
    conversion_window: Option<u32>,
}

/// What happens while a webhook cannot be reached.
#[derive(JsonSchema)]
pub(crate) enum FailurePolicy {
    /// The request is refused.
    Fail,
    /// The request passes.
    Ignore,
}

/// A provider of resources outside of the cluster.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Provider {
    /// Its name, such as `aws`.
    name: String,
    /// `true` refuses to start without it. Default `false`.
    required: Option<bool>,
    /// Credentials; `$VAR` is read from the environment.
    auth: Option<ProviderAuth>,
    /// The version that is expected.
    version: Option<String>,
    /// OCI reference of the plug-in.
    library: Option<String>,
}

/// Credentials of a provider.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderAuth {
    /// The connection of `mongodb`.
    mongo_uri: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Text>,
}

/// Who is told when something fails.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    /// Whether anybody is. Default `true`.
    enabled: Option<bool>,
    /// `true` sends without the gateway. Default: `false` in a cluster, `true` outside.
    standalone: Option<bool>,
    /// What counts for all teams.
    defaults: Option<NotificationDefaults>,
    /// Who is told, by name.
    teams: Option<BTreeMap<String, Team>>,
}

/// What counts for all teams.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotificationDefaults {
    /// The least time between two messages. Default `15m`.
    interval: Option<Span>,
    /// Where messages go without a team's own; `$VAR` is read from the environment.
    slack_webhook_url: Option<String>,
}

/// Who is told.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Team {
    /// A channel.
    slack: Option<Slack>,
    /// Addresses.
    email: Option<Vec<String>>,
    /// The least time between two messages. Default: that of `defaults`.
    interval: Option<Span>,
    /// The message, as a template.
    message: Option<Text>,
}

/// A channel.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slack {
    /// Its URL; `$VAR` is read from the environment.
    webhook: Option<String>,
}
