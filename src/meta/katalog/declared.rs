//! The declarations of a Katalog's accepted revisions, as its status records them: metadata on custom resources is checked
//! against them.

use std::sync::Arc;

use orkestra_core::{
    api::OperatedKind,
    plan::{OperatorPlan, Plan},
    reconcile::inventory::DeclaredKinds,
};

use super::{
    super::{calls::RequestError, release::operated},
    KatalogController,
};
use crate::meta::release::group_kind;

impl KatalogController {
    /// Returns the record of an operated kind, including the declarations of earlier revisions.
    pub(super) fn record_of(&self, operator: &OperatorPlan) -> OperatedKind {
        let mut kind = operated(operator);
        let mut declared = DeclaredKinds::of(operator);
        if let Some(before) = self.operated.get(&operator.resource.group_kind()) {
            declared.extend(DeclaredKinds::recorded(before));
        }
        declared.record(&mut kind);
        kind
    }

    /// Publishes to operators the declarations of a plan and of earlier revisions, before they run it.
    pub(super) fn note_declared(&self, plan: &Plan) {
        let accepted = &self.shared.context.accepted;
        for operator in &plan.operators {
            let kind = operator.resource.group_kind();
            accepted.add(&self.reference, kind, DeclaredKinds::of(operator));
        }
        // A follower uses the record that the leader wrote.
        for kind in self.operated.values().chain(&self.object.status.operated) {
            accepted.add(
                &self.reference,
                group_kind(kind),
                DeclaredKinds::recorded(kind),
            );
        }
    }

    /// Records the declarations of stored revisions, if an earlier release of Orkestra operated a kind without recording
    /// them.
    pub(super) async fn record_earlier(&mut self) -> Result<(), RequestError> {
        let is_recorded = |kind: &OperatedKind| kind.children.is_some();
        if self.operated.values().all(is_recorded) {
            return Ok(());
        }
        let stored = self.revisions.list().await?;
        let plans: Vec<Arc<Plan>> = stored
            .iter()
            .filter_map(|revision| Some(self.judge_stored(revision)?.plan))
            .collect();
        let operators = || plans.iter().flat_map(|plan| &plan.operators);
        for (group_kind, kind) in &mut self.operated {
            let mut declared = DeclaredKinds::recorded(kind);
            for operator in operators().filter(|one| one.resource.group_kind() == *group_kind) {
                declared.extend(DeclaredKinds::of(operator));
            }
            declared.record(kind);
        }
        Ok(())
    }
}
