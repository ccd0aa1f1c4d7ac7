//! What the accepted revisions of each Katalog declare. Annotations that a user may have written are checked against it.
//!
//! ```text
//!  Katalog's status, plans that run ── add ──► Accepted ── of ──► Bound: which kinds of an inventory count
//! ```
//!
//! It only grows while the Katalog lives: a kind that the current revision dropped may still have children.

use std::{collections::BTreeMap, sync::Mutex};

use orkestra_core::{
    plan::{GroupKind, KatalogRef, OperatorPlan},
    reconcile::inventory::Declared,
};

use super::shared::lock;

/// What the accepted revisions of each Katalog declare, by the kind of the custom resource.
#[derive(Debug, Default)]
pub struct Accepted(Mutex<BTreeMap<KatalogRef, BTreeMap<GroupKind, Declared>>>);

impl Accepted {
    /// Adds what a revision declares for a kind. Operators that start, or follow another plan, afterwards know of it.
    pub fn add(&self, katalog: &KatalogRef, kind: GroupKind, declared: Declared) {
        let mut accepted = lock(&self.0);
        let kinds = accepted.entry(katalog.clone()).or_default();
        kinds.entry(kind).or_default().extend(declared);
    }

    /// Forgets a Katalog that is gone: another one of the same name starts anew.
    pub fn forget(&self, katalog: &KatalogRef) {
        lock(&self.0).remove(katalog);
    }

    /// What an operator's accepted revisions declare, `plan` among them.
    pub(super) fn of(&self, plan: &OperatorPlan) -> Declared {
        let mut declared = Declared::of(plan);
        let accepted = lock(&self.0);
        let kinds = accepted.get(&plan.katalog);
        if let Some(earlier) = kinds.and_then(|kinds| kinds.get(&plan.resource.group_kind())) {
            declared.extend(earlier.clone());
        }
        declared
    }
}
