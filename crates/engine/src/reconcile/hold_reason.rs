//! The reason why a custom resource is held back.

use super::reason::Reason;
use orkestra_language::api::{conditions, names};

/// Why no pass runs over a custom resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// It should not be queued.
    NotQueued,
    /// It should not be reconciled: the operator's health shows it too.
    Gated,
    /// Its annotation suspends it.
    Suspended,
}

impl HoldReason {
    /// Returns the condition that reports it, with its reason.
    pub(crate) fn condition(self) -> (&'static str, Reason) {
        match self {
            Self::NotQueued | Self::Gated => (conditions::GATED, Reason::GateClosed),
            Self::Suspended => (conditions::SUSPENDED, Reason::Suspended),
        }
    }

    /// Returns the message of that condition; `detail` is the path of the condition that does not hold, or who suspended the
    /// custom resource.
    pub(crate) fn message(self, detail: Option<&str>) -> String {
        let gate = match self {
            Self::NotQueued => "enqueueGate",
            Self::Gated => "reconcileGate",
            Self::Suspended => {
                let by = detail.map(|by| format!(", set by {by}"));
                return format!(
                    "no pass runs while the annotation `{}` is \"true\"{}",
                    names::ANNOTATION_SUSPEND,
                    by.unwrap_or_default()
                );
            }
        };
        let unmet = detail.map(|path| format!(": {path} does not hold"));
        format!(
            "no pass runs while `preReconcile.{gate}` is closed{}",
            unmet.unwrap_or_default()
        )
    }
}
