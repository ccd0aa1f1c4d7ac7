//! `notification`: messages about failures. The types exist only for their schemas.
#![expect(dead_code, reason = "only the schemas are used")]

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::duration::Span;
use super::scalar::Text;

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
