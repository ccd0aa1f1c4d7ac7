//! `emit`: Kubernetes Events that a Katalog declares.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{gate::Gates, observe::EventType, scalar::Text};

/// Events that an operator emits, in addition to the status of its custom resources.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Emit {
    /// Kubernetes Events about the custom resource, by name. An Event is sent when its conditions begin to hold, and when
    /// its reason or message changes while they hold.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, EmittedEvent>,
}

/// A Kubernetes Event about a custom resource.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmittedEvent {
    /// Type of the Event. Default `Normal`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<EventType>,
    /// Reason of the Event: one word in CamelCase, such as `BackupDone`, or a template for one.
    pub reason: Text,
    /// A human-readable message. At most 1024 bytes are sent.
    pub message: Text,
    /// Specifies after which reconcile passes the Event is considered. Default `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<EmitOn>,
    /// Conditions of the Event.
    #[serde(flatten)]
    pub gates: Gates,
}

/// The reconcile passes after which an Event is considered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmitOn {
    /// After every reconcile pass.
    #[default]
    Always,
    /// After reconcile passes that succeeded.
    Success,
    /// After reconcile passes that failed.
    Failure,
}
