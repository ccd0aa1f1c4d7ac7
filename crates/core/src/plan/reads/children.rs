//! The names below `.children`.

use std::collections::BTreeMap;

use crate::{
    api::EnrichTarget,
    plan::{ChildPlan, GroupKind, Number, OperatorPlan, kinds},
    value::{Key, Step},
};

/// What stands under each name below `.children`.
pub(crate) fn names(children: &[ChildPlan]) -> BTreeMap<String, (GroupKind, Number)> {
    Known::of(children)
}

/// The names below `.children` that the declared kinds have.
pub(super) struct Known {
    pub(super) names: BTreeMap<String, (GroupKind, Number)>,
    /// The entries of `cross`, in order.
    pub(super) cross: Vec<Key>,
    /// The entries of `observe.events`, by name.
    pub(super) events: Vec<Key>,
    /// What is added to children.
    pub(super) enrich: Vec<EnrichTarget>,
    /// Whether there are no others.
    pub(super) all: bool,
}

impl Known {
    pub(super) fn new(plan: &OperatorPlan, all: bool) -> Self {
        Self {
            names: Self::of(&plan.children),
            cross: plan.cross.iter().map(|entry| entry.name.clone()).collect(),
            events: (plan.observe.events.iter())
                .map(|entry| entry.name.clone())
                .collect(),
            enrich: plan.enrich.iter().map(|entry| entry.target).collect(),
            all,
        }
    }

    /// Of two kinds that share a name Kubernetes' own has it, else the one that is declared first.
    fn of(children: &[ChildPlan]) -> BTreeMap<String, (GroupKind, Number)> {
        let mut known = BTreeMap::new();
        let built_in = children
            .iter()
            .filter(|child| kinds::built_in(&child.kind.group_kind()).is_some());
        for child in built_in.chain(children) {
            let kind = &child.kind;
            let plural = kind
                .plural
                .as_ref()
                .map_or_else(|| kinds::guess_plural(&kind.kind), Key::to_string);
            let singular = kinds::lower_camel(&kind.kind);
            let names = [
                (kinds::camel_plural(&singular, &plural), Number::Plural),
                (plural, Number::Plural),
                (kind.kind.to_ascii_lowercase(), Number::Singular),
                (singular, Number::Singular),
            ];
            for (name, number) in names {
                known
                    .entry(name)
                    .or_insert_with(|| (kind.group_kind(), number));
            }
        }
        known
    }

    /// Whether what stands below `.cross` starts with the name of an entry, or with none.
    pub(super) fn has_cross(&self, below: &[Step]) -> bool {
        match below.first() {
            Some(Step::Field(name)) => self.cross.contains(name),
            Some(Step::Index(_)) => false,
            None => true,
        }
    }

    pub(super) fn kinds(&self) -> impl Iterator<Item = &GroupKind> {
        self.names.values().map(|(kind, _)| kind)
    }

    /// The names as they are preferred, for messages.
    pub(super) fn listed(&self) -> String {
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
