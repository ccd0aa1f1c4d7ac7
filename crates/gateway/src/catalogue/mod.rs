//! The plans that reviews are judged by, found by resource: an immutable index, replaced as a whole.
//!
//! ```text
//!  Directory: in force? ─┬─ yes ───────► the entry of that Katalog
//!                        ├─ no ────────► nothing
//!                        └─ undecided ─► what the index had of the Katalog before, unless another one holds the kind now
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orkestra_plan::{ConversionPlan, GroupKind, KatalogRef, OperatorPlan, Plan, SecurityPlan};

use orkestra_controller::{InForce, KatalogView};

/// Group, version and plural.
type Resource = (Box<str>, Box<str>, Box<str>);

/// Group and kind.
pub(crate) type Kind = (Box<str>, Box<str>);
/// Conversions by kind.
pub(crate) type Conversions = BTreeMap<Kind, KindConversion>;

/// All plans.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    /// The plans with the entries that are in force, sorted by Katalog.
    pub(crate) katalogs: Vec<(KatalogRef, Arc<Plan>)>,
    /// Whether it is known of every Katalog what it declares and what of it is in force: otherwise what is missing here may be in
    /// force nevertheless.
    pub(crate) complete: bool,
    /// Whether the status of any Katalog says that policies apply its rules: they may exist even if none declares them any more.
    pub(crate) had_policies: bool,
    operators: BTreeMap<Resource, Arc<OperatorPlan>>,
    conversions: Conversions,
    /// Conversions that Katalogs declared earlier: stored objects may need them.
    earlier: Conversions,
}

/// The conversion of a kind.
#[derive(Clone, Debug)]
pub(crate) struct KindConversion {
    /// The Katalog that declares it.
    pub(crate) katalog: KatalogRef,
    /// The entry of it whose figures count it.
    pub(crate) entry: String,
    pub(crate) plan: Arc<ConversionPlan>,
    pub(crate) security: SecurityPlan,
}

impl KindConversion {
    /// Returns the kind that it converts.
    pub(crate) fn key(&self) -> Kind {
        let kind = &self.plan.kind;
        ((&*kind.group).into(), (&*kind.kind).into())
    }
}

impl Catalogue {
    /// Indexes the Katalogs of a directory, and what `before` had of those that are undecided. `conversion` is whether kinds are
    /// converted whose Katalog does not say so.
    pub(crate) fn new(katalogs: &[KatalogView], before: &Self, conversion: bool) -> Self {
        let held: BTreeMap<GroupKind, &KatalogRef> = katalogs.iter().flat_map(held).collect();
        let mut catalogue = Self {
            complete: katalogs.iter().all(is_decided),
            had_policies: katalogs.iter().any(|katalog| katalog.had_policies),
            ..Self::default()
        };
        for katalog in katalogs {
            let reference = &katalog.reference;
            let earlier = before.plan(reference);
            let is_free = |kind: &GroupKind| held.get(kind).is_none_or(|one| *one == reference);
            let had = |kind: &GroupKind| {
                let mut had = earlier.iter().flat_map(|plan| &plan.operators);
                is_free(kind) && had.any(|one| one.resource.group_kind() == *kind)
            };
            let plan = match (&katalog.plan, earlier) {
                (Some(plan), _) => plan,
                (None, Some(earlier)) if !katalog.decided => earlier,
                (None, _) => continue,
            };
            let applies = |operator: &OperatorPlan| {
                let kind = operator.resource.group_kind();
                match in_force(katalog, &operator.name) {
                    InForce::Yes => true,
                    InForce::No => false,
                    InForce::Undecided => had(&kind),
                }
            };
            if let Some(plan) = reduced(plan, applies) {
                catalogue.add(reference, &plan, conversion);
            }
        }
        for (kind, conversion) in before.earlier.iter().chain(&before.conversions) {
            if !catalogue.conversions.contains_key(kind) {
                catalogue.earlier.insert(kind.clone(), conversion.clone());
            }
        }
        catalogue
    }

    fn plan(&self, katalog: &KatalogRef) -> Option<&Arc<Plan>> {
        let mut katalogs = self.katalogs.iter();
        let (_, plan) = katalogs.find(|(reference, _)| reference == katalog)?;
        Some(plan)
    }

    /// Adds a plan all entries of which are in force.
    fn add(&mut self, katalog: &KatalogRef, plan: &Arc<Plan>, conversion: bool) {
        self.katalogs.push((katalog.clone(), Arc::clone(plan)));
        for operator in &plan.operators {
            let resource = &operator.resource;
            let Some(plural) = &resource.plural else {
                continue;
            };
            let [group, version, plural] =
                [&*resource.group, &*resource.version, plural].map(Box::from);
            self.operators
                .insert((group, version, plural), operator.clone());
        }
        if plan.security.conversion.unwrap_or(conversion) {
            self.add_conversions(katalog, plan);
        }
    }

    fn add_conversions(&mut self, katalog: &KatalogRef, plan: &Plan) {
        for conversion in &plan.conversions {
            let of_kind = |one: &&Arc<OperatorPlan>| one.resource.group_kind() == conversion.kind;
            let Some(operator) = plan.operators.iter().find(of_kind) else {
                continue;
            };
            let conversion = KindConversion {
                katalog: katalog.clone(),
                entry: operator.name.clone(),
                plan: conversion.clone(),
                security: plan.security.clone(),
            };
            self.conversions.insert(conversion.key(), conversion);
        }
    }

    /// Returns the operator of that resource.
    pub(crate) fn operator(
        &self,
        group: &str,
        version: &str,
        plural: &str,
    ) -> Option<&Arc<OperatorPlan>> {
        let key = (group.into(), version.into(), plural.into());
        self.operators.get(&key)
    }

    /// Returns the conversion of that kind: the one that is declared, else the last one that was.
    pub(crate) fn conversion(&self, group: &str, kind: &str) -> Option<&KindConversion> {
        let key = (group.into(), kind.into());
        let declared = self.conversions.get(&key);
        declared.or_else(|| self.earlier.get(&key))
    }

    /// True if a conversion is declared for the definition of that name.
    pub(crate) fn declares(&self, definition: &str) -> bool {
        let mut conversions = self.conversions.values();
        conversions.any(|one| one.plan.definition() == definition)
    }

    /// True if there is a conversion of a kind of the group.
    pub(crate) fn converts(&self, group: &str) -> bool {
        let mut kinds = self.conversions.keys().chain(self.earlier.keys());
        kinds.any(|(of, _)| **of == *group)
    }

    /// Returns all conversions that are declared.
    pub(crate) fn conversions(&self) -> impl Iterator<Item = &KindConversion> {
        self.conversions.values()
    }
}

/// Returns what is known of an entry; an entry without a view is not decided yet.
fn in_force(katalog: &KatalogView, entry: &str) -> InForce {
    let view = katalog.operator(entry);
    view.map_or(InForce::Undecided, |view| view.in_force)
}

/// Returns the kinds that a Katalog holds.
fn held(katalog: &KatalogView) -> impl Iterator<Item = (GroupKind, &KatalogRef)> {
    let held = (katalog.operators.iter()).filter(|view| view.in_force == InForce::Yes);
    held.map(|view| (view.wanted.plan.resource.group_kind(), &katalog.reference))
}

/// True if it is known what a Katalog declares, and what of it is in force.
fn is_decided(katalog: &KatalogView) -> bool {
    let entries = katalog.plan.iter().flat_map(|plan| &plan.operators);
    let mut entries = entries.map(|operator| in_force(katalog, &operator.name));
    katalog.decided && entries.all(|one| one != InForce::Undecided)
}

/// Returns a plan with the entries that apply, and what concerns them; none without entries.
fn reduced(plan: &Arc<Plan>, applies: impl Fn(&OperatorPlan) -> bool) -> Option<Arc<Plan>> {
    let operators: Vec<_> = (plan.operators.iter())
        .filter(|operator| applies(operator))
        .cloned()
        .collect();
    if operators.len() == plan.operators.len() {
        return (!operators.is_empty()).then(|| Arc::clone(plan));
    }
    let kinds: BTreeSet<GroupKind> = (operators.iter())
        .map(|operator| operator.resource.group_kind())
        .collect();
    let conversions = plan.conversions.iter();
    let conversions = conversions.filter(|one| kinds.contains(&one.kind)).cloned();
    let Plan {
        katalog,
        operators: _,
        stopped,
        deletion_policy,
        security,
        conversions: _,
        definitions,
    } = &**plan;
    (!kinds.is_empty()).then(|| {
        Arc::new(Plan {
            katalog: katalog.clone(),
            conversions: conversions.collect(),
            definitions: definitions.clone(),
            stopped: stopped.clone(),
            deletion_policy: *deletion_policy,
            security: security.clone(),
            operators,
        })
    })
}

#[cfg(test)]
mod tests;
