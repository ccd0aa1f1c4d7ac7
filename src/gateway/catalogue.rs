//! The plans that reviews are judged by, found by resource: an immutable index, replaced as a whole.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_core::plan::{ConversionPlan, KatalogRef, OperatorPlan, Plan, SecurityPlan};

use crate::meta::KatalogView;

/// Group, version and plural.
type Resource = (Box<str>, Box<str>, Box<str>);

/// Group and kind.
pub(super) type Kind = (Box<str>, Box<str>);
/// Conversions by kind.
pub(super) type Conversions = BTreeMap<Kind, KindConversion>;

/// All plans.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// The Katalogs that are in force, sorted.
    pub(super) katalogs: Vec<(KatalogRef, Arc<Plan>)>,
    operators: BTreeMap<Resource, Arc<OperatorPlan>>,
    conversions: Conversions,
    /// Conversions that Katalogs declared earlier: stored objects may need them.
    earlier: Conversions,
}

/// The conversion of a kind.
#[derive(Clone, Debug)]
pub(super) struct KindConversion {
    /// The Katalog that declares it.
    pub(super) katalog: KatalogRef,
    /// The entry of it whose figures count it.
    pub(super) entry: String,
    pub(super) plan: Arc<ConversionPlan>,
    pub(super) security: SecurityPlan,
}

impl KindConversion {
    /// Returns the kind that it converts.
    pub(super) fn key(&self) -> Kind {
        let kind = &self.plan.kind;
        ((&*kind.group).into(), (&*kind.kind).into())
    }
}

impl Catalogue {
    /// Indexes the Katalogs of a directory. Entries of kinds that another Katalog holds are left out. `conversion` is whether
    /// kinds are converted whose Katalog does not say so.
    pub(super) fn new(katalogs: &[KatalogView], conversion: bool) -> Self {
        let mut catalogue = Self::default();
        for katalog in katalogs {
            let Some(plan) = &katalog.plan else { continue };
            catalogue
                .katalogs
                .push((katalog.reference.clone(), plan.clone()));
            let is_held = |name: &str| {
                let view = katalog.operators.iter().find(|view| view.name() == name);
                view.is_none_or(|view| view.conflict.is_none())
            };
            for operator in plan.operators.iter().filter(|one| is_held(&one.name)) {
                let resource = &operator.resource;
                let Some(plural) = &resource.plural else {
                    continue;
                };
                let texts = [&*resource.group, &*resource.version, plural].map(Box::from);
                let [group, version, plural] = texts;
                let key = (group, version, plural);
                catalogue
                    .operators
                    .entry(key)
                    .or_insert_with(|| operator.clone());
            }
            if plan.security.conversion.unwrap_or(conversion) {
                catalogue.add_conversions(&katalog.reference, plan, &is_held);
            }
        }
        catalogue
    }

    fn add_conversions(
        &mut self,
        katalog: &KatalogRef,
        plan: &Plan,
        is_held: &dyn Fn(&str) -> bool,
    ) {
        for conversion in &plan.conversions {
            let of_kind = |one: &&Arc<OperatorPlan>| one.resource.group_kind() == conversion.kind;
            let Some(operator) = plan.operators.iter().find(of_kind) else {
                continue;
            };
            if !is_held(&operator.name) {
                continue;
            }
            let key = [&*conversion.kind.group, &*conversion.kind.kind].map(Box::from);
            let [group, kind] = key;
            self.conversions
                .entry((group, kind))
                .or_insert_with(|| KindConversion {
                    katalog: katalog.clone(),
                    entry: operator.name.clone(),
                    plan: conversion.clone(),
                    security: plan.security.clone(),
                });
        }
    }

    /// Returns the operator of that resource.
    pub(super) fn operator(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<OperatorPlan>> {
        let key = (group.into(), version.into(), plural.into());
        self.operators.get(&key)
    }

    /// True if the operator is the one that this index holds for its resource.
    pub(super) fn holds(&self, operator: &Arc<OperatorPlan>) -> bool {
        self.operators
            .values()
            .any(|held| Arc::ptr_eq(held, operator))
    }

    /// Keeps the conversions of `before` that no Katalog declares any more. Whether they are used is decided by the definition.
    #[must_use]
    pub(super) fn after(mut self, before: &Self) -> Self {
        for (kind, conversion) in before.earlier.iter().chain(&before.conversions) {
            if !self.conversions.contains_key(kind) {
                self.earlier.insert(kind.clone(), conversion.clone());
            }
        }
        self
    }

    /// Returns the conversion of that kind: the one that is declared, else the last one that was.
    pub(super) fn conversion(&self, group: &str, kind: &str) -> Option<&KindConversion> {
        let key = (group.into(), kind.into());
        let declared = self.conversions.get(&key);
        declared.or_else(|| self.earlier.get(&key))
    }

    /// True if a conversion is declared for the definition of that name.
    pub(super) fn declares(&self, definition: &str) -> bool {
        let mut conversions = self.conversions.values();
        conversions.any(|one| one.plan.definition() == definition)
    }

    /// True if there is a conversion of a kind of the group.
    pub(super) fn converts(&self, group: &str) -> bool {
        let mut kinds = self.conversions.keys().chain(self.earlier.keys());
        kinds.any(|(of, _)| **of == *group)
    }

    /// Returns all conversions that are declared.
    pub(super) fn conversions(&self) -> impl Iterator<Item = &KindConversion> {
        self.conversions.values()
    }
}
