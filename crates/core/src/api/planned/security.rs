//! Further blocks of a Katalog: providers, messages.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use crate::api::duration::Span;
use crate::api::scalar::Text;

/// Further blocks of a Katalog.
#[derive(JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SpecLater {
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
    /// Providers, in addition to those of the sources.
    providers: Option<Vec<Provider>>,
    /// Notifications. Teams are added to those of the sources.
    notification: Option<Notification>,
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
