//! Events that a Katalog declares, and the deletion of custom resources by their operator.

use std::time::Duration;

use super::{Gate, Leaf, PlanPlace, is_reason};
use orkestra_language::api::{EmitOn, conditions::EVENT_REASON_BYTES, names};
use orkestra_object::value::Path;

/// A declared Event about the custom resource.
#[derive(Debug)]
pub struct EmitPlan {
    /// Its name.
    pub name: Box<str>,
    /// True for a warning.
    pub warns: bool,
    /// The passes after which it is considered.
    pub on: EmitOn,
    /// Its reason.
    pub reason: Leaf,
    /// Its text.
    pub message: Leaf,
    /// Its conditions.
    pub gate: Gate,
}

/// When custom resources are deleted by their operator.
#[derive(Debug)]
pub struct CleanupPlan {
    /// The conditions; not empty.
    pub gate: Gate,
    /// How long they must hold.
    pub after: Duration,
    /// Its path in the Katalog, for messages.
    pub path: PlanPlace,
}

impl CleanupPlan {
    /// Returns the path of the label that protects a custom resource from deletion.
    pub fn protection() -> Path {
        Path::of_fields(["metadata", "labels", names::LABEL_PROTECTION])
    }
}

/// True if a text is a valid reason of an Event. Source: Kubernetes, validation of events.k8s.io/v1.
pub fn is_event_reason(text: &str) -> bool {
    is_reason(text) && text.len() <= EVENT_REASON_BYTES
}
