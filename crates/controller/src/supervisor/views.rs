//! The entries of Katalogs as status and pages show them.

use std::collections::BTreeMap;

use orkestra_language::reasons::KatalogReason;
use orkestra_plan::{KatalogRef, Revised};
use tokio::sync::watch;

use super::SupervisorState;
use crate::{
    claims::EXPIRY,
    directory::OperatorView,
    ledger::Decision,
    stopped::{at_rest, failed, pending, suspended},
};
use orkestra_operator::{OperatorProblem, OperatorStatus};

impl SupervisorState {
    pub(crate) fn views(&self) -> BTreeMap<KatalogRef, Vec<OperatorView>> {
        let mut views: BTreeMap<KatalogRef, Vec<OperatorView>> = BTreeMap::new();
        for (wanted, decision) in self.ledger.decisions() {
            views
                .entry(wanted.plan.katalog.clone())
                .or_default()
                .push(self.view(wanted, decision));
        }
        views
    }

    fn view(&self, wanted: Revised, decision: Decision) -> OperatorView {
        let plan = &wanted.plan;
        let in_force = (self.ledger).in_force(&plan.katalog, &plan.resource.group_kind());
        let (status, conflict) = self.status(&wanted, decision);
        OperatorView {
            wanted,
            status,
            conflict,
            in_force,
            reported: None,
        }
    }

    /// Returns the status of an entry, and the Katalog that holds its kind, if it is another one.
    fn status(
        &self,
        wanted: &Revised,
        decision: Decision,
    ) -> (watch::Receiver<OperatorStatus>, Option<String>) {
        let plan = &wanted.plan;
        let idle = |reason, message| at_rest(wanted, reason, message, None);
        match decision {
            Decision::Conflict(holder) => {
                let message = format!(
                    "{} is older and holds the claim on {}; this entry takes over when that {} releases the kind",
                    holder.titled(),
                    plan.resource.group_kind(),
                    holder.kind.kind()
                );
                (
                    idle(KatalogReason::Conflict, message),
                    Some(holder.to_string()),
                )
            }
            Decision::Foreign(holder) => {
                let message = format!(
                    "{} of installation {} holds the claim on {}; this entry takes over when the claim is released, or \
                     has not been renewed for {} minutes",
                    holder.claimant.katalog.titled(),
                    holder.installation,
                    plan.resource.group_kind(),
                    EXPIRY.as_mins(),
                );
                let katalog = holder.claimant.katalog.to_string();
                (idle(KatalogReason::Conflict, message), Some(katalog))
            }
            Decision::Unclaimed(OperatorProblem { reason, message }) => {
                (idle(reason, message), None)
            }
            Decision::Suspended => (suspended(wanted), None),
            Decision::Run(_) if self.ledger.observes() => (self.observed.clone(), None),
            Decision::Run(role) => {
                let key = (plan.katalog.clone(), plan.name.clone());
                let status = match (self.operators.get(&key), self.failures.error(&key)) {
                    (Some(running), _) => running.status(),
                    (None, Some(error)) => failed(wanted, role, error),
                    (None, None) => pending(wanted, role),
                };
                (status, None)
            }
        }
    }
}
