//! `emit`: Kubernetes Events that a Katalog declares.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{gate::Gates, observe::EventType, scalar::Text};

/// What an operator reports beside the status of its custom resources.
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
    /// Its severity. Default `Normal`.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub type_: Option<EventType>,
    /// One word in CamelCase, such as `BackupDone`, or a template for one.
    pub reason: Text,
    /// The text for people; at most 1024 bytes of it are sent.
    pub message: Text,
    /// The reconcile passes after which it is considered. Default `always`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<EmitOn>,
    /// Its conditions.
    #[serde(flatten)]
    pub gates: Gates,
}

/// The reconcile passes after which an Event is considered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EmitOn {
    /// All of them.
    #[default]
    Always,
    /// Those without a failure.
    Success,
    /// Those with a failure.
    Failure,
}
