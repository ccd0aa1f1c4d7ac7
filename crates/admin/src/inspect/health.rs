//! The health of an object: the readiness of the engine, in the words of kstatus.

use orkestra_engine::reconcile::kstatus::{Readiness, readiness};
use orkestra_object::{GroupKind, value::Node};
use serde::Serialize;

/// The health of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Health {
    /// The state.
    pub status: HealthStatus,
    /// What it waits for, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The states of kstatus.
///
/// Source: kubernetes-sigs/cli-utils, `pkg/kstatus`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HealthStatus {
    /// It matches its spec.
    Current,
    /// It is in progress.
    InProgress,
    /// It does not become ready without a change.
    Failed,
    /// It is being deleted.
    Terminating,
    /// It cannot be read.
    Unknown,
}

impl HealthStatus {
    /// The word that is printed.
    pub fn word(self) -> &'static str {
        match self {
            Self::Current => "Current",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
        }
    }
}

impl Health {
    /// The health of an object of that kind.
    pub fn of(kind: &GroupKind, object: &Node) -> Self {
        let deleting = object.meta("deletionTimestamp").is_some();
        Self::read(&readiness(kind, object), deleting)
    }

    /// The health that a readiness says.
    pub(crate) fn read(readiness: &Readiness, deleting: bool) -> Self {
        let (status, message) = match readiness {
            Readiness::Unreadable(fault) => (HealthStatus::Unknown, Some(fault.to_string())),
            _ if deleting => (HealthStatus::Terminating, None),
            Readiness::Current => (HealthStatus::Current, None),
            Readiness::InProgress(why) => (HealthStatus::InProgress, Some(why.to_string())),
            Readiness::Failed(why) => (HealthStatus::Failed, Some(why.to_string())),
        };
        Self { status, message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn health_is_that_of_the_engine_and_deletion_comes_first() {
        let deployment = GroupKind::parse("Deployment.apps");
        for (object, status, message) in [
            (
                json!({ "metadata": { "generation": 1 }, "status": { "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1,
                    "readyReplicas": 0 } }),
                HealthStatus::InProgress,
                Some("0 of 1 replicas available"),
            ),
            (
                json!({ "status": { "conditions": [{ "type": "Progressing", "status": "False", "message": "too slow" }] } }),
                HealthStatus::Failed,
                Some("too slow"),
            ),
            (
                json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
                HealthStatus::Terminating,
                None,
            ),
        ] {
            let health = Health::of(&deployment, &Node::from(&object));
            assert_eq!(
                (health.status, health.message.as_deref()),
                (status, message)
            );
        }
    }
}
