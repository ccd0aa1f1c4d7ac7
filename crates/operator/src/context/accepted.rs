//! The declarations of each Katalog's accepted revisions. Annotations that a user may have edited are checked against them.
//!
//! ```text
//!  Katalog's status, running plans ── add ──► Accepted ── of ──► Bound: which kinds of an inventory are valid
//! ```
//!
//! It only grows during the lifetime of the Katalog: a kind that the current revision dropped may still have children.

use std::{collections::BTreeMap, sync::Arc};

use orkestra_engine::reconcile::inventory::DeclaredKinds;
use orkestra_plan::{GroupKind, KatalogRef, OperatorPlan};
use parking_lot::Mutex;

/// The declarations of accepted revisions of each Katalog, by the kind of the custom resource.
#[derive(Debug, Default)]
pub struct Accepted(Mutex<BTreeMap<KatalogRef, BTreeMap<GroupKind, Arc<DeclaredKinds>>>>);

impl Accepted {
    /// Adds the declarations of a revision for a kind. Operators that start, or switch plans, afterwards see them.
    pub fn add(&self, katalog: &KatalogRef, kind: GroupKind, declared: DeclaredKinds) {
        let mut accepted = self.0.lock();
        let kinds = accepted.entry(katalog.clone()).or_default();
        Arc::make_mut(kinds.entry(kind).or_default()).extend(declared);
    }

    /// Removes a deleted Katalog; another one of the same name starts empty.
    pub fn forget(&self, katalog: &KatalogRef) {
        self.0.lock().remove(katalog);
    }

    /// Returns the declarations of the operator's accepted revisions, including those of `plan`: usually shared, since the
    /// revision of a plan has been accepted before it is bound.
    pub(crate) fn of(&self, plan: &OperatorPlan) -> Arc<DeclaredKinds> {
        let declared = DeclaredKinds::of(plan);
        let accepted = self.0.lock();
        let kinds = accepted.get(&plan.katalog);
        let earlier = kinds.and_then(|kinds| kinds.get(&plan.resource.group_kind()));
        let Some(earlier) = earlier else {
            return Arc::new(declared);
        };
        let mut all = DeclaredKinds::clone(earlier);
        all.extend(declared);
        if all == **earlier {
            return earlier.clone();
        }
        Arc::new(all)
    }
}
