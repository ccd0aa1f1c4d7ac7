//! Further blocks of a Katalog: providers, messages.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Further blocks of a Katalog.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpecLater {
    /// Providers of external resources.
    providers: Option<Vec<Provider>>,
    /// Notifications about failures.
    notification: Option<Notification>,
    /// The REST API and access to other clusters.
    gateway: Option<serde_json::Value>,
    /// If `true`, other operators can read the custom resources through `cross`.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "each entry of `spec.crds` has its own `crossAccess`"))]
    cross_access: Option<bool>,
    /// The requirements of a registry for artifacts.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "it is for registries"))]
    policy: Option<serde_json::Value>,
    /// The steps to run when the document is published.
    #[schemars(extend("x-orkestra-support" = "ignored", "x-orkestra-reason" = "it is for registries"))]
    publish: Option<serde_json::Value>,
}

/// Further blocks of a Komposer.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KomposerLater {
    /// Providers, in addition to those of the sources.
    providers: Option<Vec<Provider>>,
    /// Notifications. Teams are added to those of the sources.
    notification: Option<Notification>,
}

/// A provider of external resources.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Provider {
    /// Name of the provider, such as `aws`.
    name: String,
    /// If `true`, Orkestra does not start without the provider. Default `false`.
    required: Option<bool>,
    /// Credentials; `$VAR` is read from the environment.
    auth: Option<ProviderAuth>,
    /// The expected version.
    version: Option<String>,
    /// OCI reference of the plugin.
    library: Option<String>,
}

/// Credentials of a provider.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ProviderAuth {
    /// The connection URI of `mongodb`.
    mongo_uri: Option<String>,
    #[serde(flatten)]
    others: BTreeMap<String, Text>,
}

/// Notifications about failures.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notification {
    /// If `false`, no notifications are sent. Default `true`.
    enabled: Option<bool>,
    /// If `true`, notifications are sent without the gateway. Default: `false` in a cluster, `true` outside.
    standalone: Option<bool>,
    /// Settings of all teams that do not set them.
    defaults: Option<NotificationDefaults>,
    /// The teams to notify, by name.
    teams: Option<BTreeMap<String, Team>>,
}

/// Settings of all teams that do not set them.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NotificationDefaults {
    /// The minimum interval between two messages. Default `15m`.
    interval: Option<Span>,
    /// Slack webhook URL for teams without their own. `$VAR` is read from the environment.
    slack_webhook_url: Option<String>,
}

/// A team to notify.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Team {
    /// A Slack channel.
    slack: Option<Slack>,
    /// A list of email addresses.
    email: Option<Vec<String>>,
    /// The minimum interval between two messages. Default: that of `defaults`.
    interval: Option<Span>,
    /// The message, as a template.
    message: Option<Text>,
}

/// A Slack channel.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Slack {
    /// Webhook URL of the channel. `$VAR` is read from the environment.
    webhook: Option<String>,
}
