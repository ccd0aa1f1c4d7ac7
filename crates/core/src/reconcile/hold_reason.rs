//! The reason why a custom resource is held back.

/// Why no pass runs over a custom resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// It should not be queued.
    NotQueued,
    /// It should not be reconciled: the operator's health shows it too.
    Gated,
}

impl HoldReason {
    /// Returns the message of the condition `Gated`; `unmet` is the path of the condition that does not hold.
    pub(super) fn message(self, unmet: Option<&str>) -> String {
        let gate = match self {
            Self::NotQueued => "enqueueGate",
            Self::Gated => "reconcileGate",
        };
        let unmet = unmet.map(|path| format!(": {path} does not hold"));
        format!(
            "no pass runs while `preReconcile.{gate}` is closed{}",
            unmet.unwrap_or_default()
        )
    }
}
