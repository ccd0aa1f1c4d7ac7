//! The entries of Katalogs as status and pages show them.

use std::collections::BTreeMap;

use orkestra_core::{
    plan::{KatalogRef, Revised},
    reasons::KatalogReason,
};

use super::SupervisorState;
use crate::{
    meta::{
        claims::EXPIRY,
        directory::OperatorView,
        ledger::Decision,
        stopped::{at_rest, failed, pending, suspended},
    },
    runtime::OperatorProblem,
};

impl SupervisorState {
    pub(super) fn views(&self) -> BTreeMap<KatalogRef, Vec<OperatorView>> {
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
        match decision {
            Decision::Conflict(holder) => {
                let message = format!(
                    "{} is older and holds the claim on {}; this entry takes over when that {} releases the kind",
                    holder.titled(),
                    plan.resource.group_kind(),
                    holder.kind.kind()
                );
                let katalog = holder.to_string();
                idle(wanted, KatalogReason::Conflict, message, Some(katalog))
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
                idle(wanted, KatalogReason::Conflict, message, Some(katalog))
            }
            Decision::Unclaimed(OperatorProblem { reason, message }) => {
                idle(wanted, reason, message, None)
            }
            Decision::Suspended => OperatorView {
                status: suspended(&wanted),
                wanted,
                conflict: None,
                reported: None,
            },
            Decision::Run(role) => {
                let key = (wanted.plan.katalog.clone(), wanted.plan.name.clone());
                let status = match (self.operators.get(&key), self.failures.error(&key)) {
                    (Some(running), _) => running.status(),
                    (None, Some(error)) => failed(&wanted, role, error),
                    (None, None) => pending(&wanted, role),
                };
                OperatorView {
                    wanted,
                    status,
                    conflict: None,
                    reported: None,
                }
            }
        }
    }
}

/// Returns the view of an entry that is not started.
fn idle(
    wanted: Revised,
    reason: KatalogReason,
    message: String,
    conflict: Option<String>,
) -> OperatorView {
    let status = at_rest(&wanted, reason, message, None);
    OperatorView {
        wanted,
        status,
        conflict,
        reported: None,
    }
}
