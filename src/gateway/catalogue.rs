//! The plans that reviews are judged by, found by resource: an immutable index, replaced as a whole.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_core::plan::{ConversionPlan, KatalogRef, OperatorPlan, Plan, SecurityPlan};

use crate::meta::KatalogView;

/// Group, version and plural.
type Resource = (Box<str>, Box<str>, Box<str>);

/// All plans.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    /// The Katalogs that are in force, sorted.
    pub(super) katalogs: Vec<(KatalogRef, Arc<Plan>)>,
    operators: BTreeMap<Resource, Arc<OperatorPlan>>,
    conversions: BTreeMap<(Box<str>, Box<str>), Conversion>,
}

/// The conversion of a kind.
#[derive(Clone, Debug)]
pub(super) struct Conversion {
    /// The Katalog that declares it.
    pub(super) katalog: KatalogRef,
    /// The entry of it whose figures count it.
    pub(super) entry: String,
    pub(super) plan: Arc<ConversionPlan>,
    pub(super) security: SecurityPlan,
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
                .or_insert_with(|| Conversion {
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

    /// Returns the conversion of that kind.
    pub(super) fn conversion(&self, group: &str, kind: &str) -> Option<&Conversion> {
        self.conversions.get(&(group.into(), kind.into()))
    }

    /// Returns all conversions.
    pub(super) fn conversions(&self) -> impl Iterator<Item = &Conversion> {
        self.conversions.values()
    }
}
