//! The kinds that a Katalog operated, with the declarations of its accepted revisions for them, as its status records them:
//! metadata on custom resources is checked against them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_engine::reconcile::inventory::DeclaredKinds;
use orkestra_language::api::OperatedKind;
use orkestra_plan::{GroupKind, OperatorPlan, Plan};

use super::{
    super::{calls::RequestError, release::operated},
    KatalogController,
};
use crate::release::group_kind;

/// The kinds that a Katalog operated and has not released yet, and what proves that it operated them.
#[derive(Debug, Default)]
pub(crate) struct OperatedKinds {
    kinds: BTreeMap<GroupKind, OperatedKind>,
    /// Those that were written into the status.
    recorded: BTreeSet<GroupKind>,
    /// Kinds that accepted revisions of this Katalog declared, as far as checked.
    declared: BTreeSet<GroupKind>,
}

impl OperatedKinds {
    /// The kinds that a status records; nothing proves them yet.
    pub(crate) fn of_status(written: &[OperatedKind]) -> Self {
        let kinds = written.iter().map(|kind| (group_kind(kind), kind.clone()));
        Self {
            kinds: kinds.collect(),
            ..Self::default()
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(crate) fn contains(&self, kind: &GroupKind) -> bool {
        self.kinds.contains_key(kind)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&GroupKind, &OperatedKind)> {
        self.kinds.iter()
    }

    /// Returns the kinds without their records.
    pub(crate) fn names(&self) -> impl Iterator<Item = &GroupKind> {
        self.kinds.keys()
    }

    /// Returns the records, as the status lists them.
    pub(crate) fn records(&self) -> Vec<OperatedKind> {
        self.kinds.values().cloned().collect()
    }

    /// Returns the records of the kinds that are not wanted.
    pub(crate) fn unwanted(&self, wanted: &BTreeSet<GroupKind>) -> Vec<OperatedKind> {
        let unwanted = self
            .kinds
            .iter()
            .filter(|(kind, _)| !wanted.contains(*kind));
        unwanted.map(|(_, kind)| kind.clone()).collect()
    }

    /// Returns the kinds that were written into the status.
    pub(crate) fn recorded(&self) -> &BTreeSet<GroupKind> {
        &self.recorded
    }

    /// True if an accepted revision is known to declare the kind.
    pub(crate) fn is_declared(&self, kind: &GroupKind) -> bool {
        self.declared.contains(kind)
    }

    /// True if a status records all of them as they are.
    pub(crate) fn are_written(&self, written: &[OperatedKind]) -> bool {
        self.kinds.values().all(|kind| written.contains(kind))
    }

    /// True if one of these kinds, which are about to be operated, is not recorded as such.
    pub(crate) fn lacks_record(&self, ready: &[OperatedKind]) -> bool {
        ready
            .iter()
            .any(|kind| !self.recorded.contains(&group_kind(kind)))
    }

    /// Returns the record of an operated kind, including the declarations of earlier revisions.
    pub(crate) fn record_of(&self, operator: &OperatorPlan) -> OperatedKind {
        let mut kind = operated(operator);
        let mut declared = DeclaredKinds::of(operator);
        if let Some(before) = self.kinds.get(&operator.resource.group_kind()) {
            declared.extend(DeclaredKinds::recorded(before));
        }
        declared.record(&mut kind);
        kind
    }

    /// Takes over the kinds that a predecessor operated.
    pub(crate) fn inherit(&mut self, written: &[OperatedKind]) {
        for kind in written {
            let kept = self.kinds.entry(group_kind(kind));
            let kept = kept.or_insert_with(|| kind.clone());
            if kind.children.is_some() {
                let mut declared = DeclaredKinds::recorded(kept);
                declared.extend(DeclaredKinds::recorded(kind));
                declared.record(kept);
            }
        }
    }

    /// Adds the declarations of an accepted revision for the kind of one of its operators. The kind is not operated before the
    /// operator is ready.
    pub(crate) fn declare(&mut self, operator: &OperatorPlan) {
        let kind = operator.resource.group_kind();
        if self.kinds.contains_key(&kind) {
            let record = self.record_of(operator);
            self.kinds.insert(kind.clone(), record);
        }
        self.declared.insert(kind);
    }

    /// Adds kinds that accepted revisions declared.
    pub(crate) fn add_declared(&mut self, kinds: BTreeSet<GroupKind>) {
        self.declared.extend(kinds);
    }

    /// Adds kinds that are operated from now on.
    pub(crate) fn add(&mut self, ready: &[OperatedKind]) {
        for kind in ready {
            let known = self.kinds.entry(group_kind(kind));
            let known = known.or_insert_with(|| kind.clone());
            let mut declared = DeclaredKinds::recorded(known);
            declared.extend(DeclaredKinds::recorded(kind));
            // Use a version that is still operated for access.
            let is_served =
                |one: &OperatedKind| (&one.version, &one.plural) == (&known.version, &known.plural);
            if !ready.iter().any(is_served) {
                *known = kind.clone();
            }
            declared.record(known);
        }
    }

    /// Notes that the status was written with all of them.
    pub(crate) fn note_written(&mut self) {
        self.recorded.extend(self.kinds.keys().cloned());
    }

    /// Notes those of them that a status records.
    pub(crate) fn note_recorded(&mut self, written: &BTreeSet<GroupKind>) {
        let known = written.iter().filter(|kind| self.kinds.contains_key(*kind));
        self.recorded.extend(known.cloned());
    }

    /// Removes a kind that is released, or that another Katalog has.
    pub(crate) fn forget(&mut self, kind: &GroupKind) {
        self.kinds.remove(kind);
        self.recorded.remove(kind);
    }

    /// True if an earlier release of Orkestra operated a kind without recording the declarations.
    fn lack_declarations(&self) -> bool {
        self.kinds.values().any(|kind| kind.children.is_none())
    }

    /// Adds the declarations of plans to the kinds that they operate.
    fn add_declarations(&mut self, plans: &[Arc<Plan>]) {
        let operators = || plans.iter().flat_map(|plan| &plan.operators);
        for (group_kind, kind) in &mut self.kinds {
            let mut declared = DeclaredKinds::recorded(kind);
            for operator in operators().filter(|one| one.resource.group_kind() == *group_kind) {
                declared.extend(DeclaredKinds::of(operator));
            }
            declared.record(kind);
        }
    }
}

impl KatalogController {
    /// Publishes to operators the declarations of a plan and of earlier revisions, before they run it.
    pub(crate) fn note_declared(&self, plan: &Plan) {
        let accepted = &self.shared.context.accepted;
        for operator in &plan.operators {
            let kind = operator.resource.group_kind();
            accepted.add(&self.reference, kind, DeclaredKinds::of(operator));
        }
        // A follower uses the record that the leader wrote.
        let kinds = self.operated.kinds.values();
        for kind in kinds.chain(&self.object.status.operated) {
            accepted.add(
                &self.reference,
                group_kind(kind),
                DeclaredKinds::recorded(kind),
            );
        }
    }

    /// Records the declarations of stored revisions, if an earlier release of Orkestra operated a kind without recording
    /// them.
    pub(crate) async fn record_earlier(&mut self) -> Result<(), RequestError> {
        if !self.operated.lack_declarations() {
            return Ok(());
        }
        let stored = self.revisions.list().await?;
        let mut plans: Vec<Arc<Plan>> = Vec::new();
        for revision in &stored {
            let judged = self.judge_stored(revision).await;
            plans.extend(judged.map(|judged| judged.plan));
        }
        self.operated.add_declarations(&plans);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pond(version: &str) -> OperatedKind {
        OperatedKind {
            group: "water.example".to_owned(),
            kind: "Pond".to_owned(),
            plural: "ponds".to_owned(),
            version: version.to_owned(),
            ..OperatedKind::default()
        }
    }

    fn versions(kinds: &OperatedKinds) -> Vec<String> {
        let records = kinds.records().into_iter();
        records.map(|kind| kind.version).collect()
    }

    #[test]
    fn a_kind_keeps_its_version_as_long_as_that_is_operated() {
        let mut kinds = OperatedKinds::of_status(&[pond("v1")]);
        kinds.add(&[pond("v2"), pond("v1")]);
        assert_eq!(versions(&kinds), ["v1"]);
        kinds.add(&[pond("v2")]);
        assert_eq!(versions(&kinds), ["v2"]);
        // The record of a predecessor does not change the version.
        kinds.inherit(&[pond("v1")]);
        assert_eq!(versions(&kinds), ["v2"]);
    }

    #[test]
    fn a_kind_is_recorded_once_a_status_with_it_is_known_until_it_is_forgotten() {
        let kind = group_kind(&pond("v1"));
        let mut kinds = OperatedKinds::default();
        // An entry of the status for a kind that is not operated is ignored.
        kinds.note_recorded(&[kind.clone()].into());
        assert!(kinds.lacks_record(&[pond("v1")]));
        kinds.add(&[pond("v1")]);
        kinds.note_recorded(&[kind.clone()].into());
        assert!(!kinds.lacks_record(&[pond("v1")]));
        kinds.forget(&kind);
        assert!(kinds.is_empty() && kinds.lacks_record(&[pond("v1")]));
        kinds.add(&[pond("v1")]);
        kinds.note_written();
        assert!(!kinds.lacks_record(&[pond("v1")]));
    }
}
