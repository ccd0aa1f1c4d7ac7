//! The names below `.children`.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_language::api::EnrichTarget;
use orkestra_object::value::Key;
use orkestra_plan::{ChildPlan, GroupKind, NameForm, ObservePlan, OperatorPlan, kinds};

/// The names below `.children` of the declared kinds.
pub(crate) struct KnownChildren {
    pub(crate) names: BTreeMap<String, (GroupKind, NameForm)>,
    /// The additions to children.
    pub(crate) enrich: Vec<EnrichTarget>,
    /// True if there are no other children.
    pub(crate) all: bool,
    /// True if templates read the changes made by `normalize`.
    pub(crate) audits: bool,
    /// Readable kinds that the operator does not create.
    watched: BTreeSet<GroupKind>,
}

impl KnownChildren {
    pub(crate) fn new(plan: &OperatorPlan, all: bool) -> Self {
        Self {
            names: Self::of(&plan.children, &plan.observe),
            watched: (plan.observe.readable(&plan.children))
                .map(|kind| kind.group_kind())
                .collect(),
            enrich: plan.enrich.iter().map(|entry| entry.target).collect(),
            all,
            audits: plan.rules.audit,
        }
    }

    /// Returns the kind and number of each name. If two kinds share a name, the built-in one has it, else the one declared first.
    pub(crate) fn of(
        children: &[ChildPlan],
        observe: &ObservePlan,
    ) -> BTreeMap<String, (GroupKind, NameForm)> {
        let mut known = BTreeMap::new();
        let made = || children.iter().map(|child| child.kind.clone());
        let built_in = made().filter(|kind| kinds::built_in(&kind.group_kind()).is_some());
        for kind in built_in.chain(made()).chain(observe.readable(children)) {
            let plural = kind
                .plural
                .as_ref()
                .map_or_else(|| kinds::guess_plural(&kind.kind), Key::to_string);
            let singular = kinds::lower_camel(&kind.kind);
            let names = [
                (kinds::camel_plural(&singular, &plural), NameForm::Plural),
                (plural, NameForm::Plural),
                (kind.kind.to_ascii_lowercase(), NameForm::Singular),
                (singular, NameForm::Singular),
            ];
            for (name, number) in names {
                known
                    .entry(name)
                    .or_insert_with(|| (kind.group_kind(), number));
            }
        }
        known
    }

    /// Returns the kinds that the operator creates.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        let all = self.names.values().map(|(kind, _)| kind);
        all.filter(|kind| !self.is_watched(kind))
    }

    /// True if the operator reads objects of that kind but does not create them.
    pub(crate) fn is_watched(&self, kind: &GroupKind) -> bool {
        self.watched.contains(kind)
    }

    /// Returns the preferred names, for messages.
    pub(crate) fn listed(&self) -> String {
        let singulars = self
            .names
            .iter()
            .filter(|(name, (kind, _))| **name == kinds::lower_camel(&kind.kind));
        singulars
            .map(|(name, _)| format!("`.children.{name}`"))
            .collect::<Vec<_>>()
            .join(", ")
    }
}
