//! The input of a pass: the records of a custom resource, its children, and related objects.

use std::{collections::BTreeSet, sync::Arc};

use super::{ChildRecord, CrRecord, OwnerMark};
use crate::reconcile::{inventory::Inventory, sources::Answers};
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan};

/// A child as a pass sees it.
#[derive(Clone, Debug)]
pub struct ObservedChild {
    /// Its key.
    pub key: ChildKey,
    /// Its record.
    pub record: Arc<ChildRecord>,
}

/// Everything that a pass reads.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The custom resource.
    pub cr: Arc<CrRecord>,
    /// The part of its inventory annotation that some accepted revision declared: see [`Inventory::checked`].
    pub inventory: Arc<Inventory>,
    /// Its children, sorted by key: every object whose [`ChildRecord::owner`] is its uid, in a namespace where it may have children.
    pub children: Vec<ObservedChild>,
    /// Children of a deleted custom resource of the same kind, namespace and name that Kubernetes does not collect, sorted by
    /// key: declared ones are adopted, others deleted.
    pub orphans: Vec<ObservedChild>,
    /// Kinds of its inventory that cannot be read at the moment: nothing is concluded from their absence.
    pub unseen: BTreeSet<GroupKind>,
    /// Whether its status reports a pass already; none if its CRD cannot store that. Passes report after they write, so
    /// children that the inventory of an unreported custom resource lists as created may have been lost in a crash before
    /// their creation.
    pub reported: Option<bool>,
    /// The answers to other reads of this pass so far.
    pub answers: Answers,
}

impl Observed {
    /// Returns the owner annotation of its children.
    pub fn mark(&self, plan: &OperatorPlan) -> OwnerMark {
        OwnerMark {
            kind: plan.resource.group_kind(),
            key: self.cr.id.key.clone(),
            uid: self.cr.id.uid.clone(),
        }
    }

    /// Returns the child of that key.
    pub fn child(&self, key: &ChildKey) -> Option<&Arc<ChildRecord>> {
        self.children
            .binary_search_by(|child| child.key.cmp(key))
            .ok()
            .map(|at| &self.children[at].record)
    }
}
