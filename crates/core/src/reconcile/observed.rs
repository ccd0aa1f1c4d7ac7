//! Everything that a pass reads.

use std::{collections::BTreeSet, sync::Arc};

use super::{
    inventory::Inventory,
    proof::OwnerMark,
    record::{ChildRecord, CrRecord},
    sources::Answers,
};
use crate::plan::{ChildKey, GroupKind, OperatorPlan};

/// A child as it is seen by a pass.
#[derive(Clone, Debug)]
pub struct ObservedChild {
    /// Which object.
    pub key: ChildKey,
    /// What is kept of it.
    pub record: Arc<ChildRecord>,
}

/// Everything that a pass reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The custom resource.
    pub cr: Arc<CrRecord>,
    /// What of its inventory annotation some accepted revision declared: see [`Inventory::checked`].
    pub inventory: Arc<Inventory>,
    /// Its children: every object whose [`ChildRecord::owner`] is its uid, sorted by key.
    pub children: Vec<ObservedChild>,
    /// Children of a custom resource of the same kind, namespace and name that no longer exists, and that Kubernetes does
    /// not collect, sorted by key: they are adopted where they are declared, and else deleted.
    pub orphans: Vec<ObservedChild>,
    /// Kinds of its inventory that cannot be read at the moment: nothing is concluded from their absence.
    pub unseen: BTreeSet<GroupKind>,
    /// Whether its status tells of a pass already; none where its CRD cannot hold that. Passes report after they write, so
    /// what an unreported custom resource's inventory calls made may have been lost in a crash before it was.
    pub reported: Option<bool>,
    /// What was read beside them for this pass so far.
    pub answers: Answers,
}

impl Observed {
    /// What the owner annotation of its children says.
    pub fn mark(&self, plan: &OperatorPlan) -> OwnerMark {
        OwnerMark {
            kind: plan.resource.group_kind(),
            key: self.cr.id.key.clone(),
            uid: self.cr.id.uid.clone(),
        }
    }

    /// The child of that key.
    pub fn child(&self, key: &ChildKey) -> Option<&Arc<ChildRecord>> {
        self.children
            .binary_search_by(|child| child.key.cmp(key))
            .ok()
            .map(|at| &self.children[at].record)
    }
}
