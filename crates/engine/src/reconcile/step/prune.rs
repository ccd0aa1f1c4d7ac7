//! Deletes undeclared children, and records the inventory for the next pass.

use std::collections::BTreeSet;

use super::{Cycle, Deletion, Intent, pass::Pass};
use crate::reconcile::inventory::Inventory;
use orkestra_plan::{ChildKey, GroupKind, ResourceType};

impl Pass<'_, '_> {
    /// Completes the pass's decision after all declarations.
    pub(crate) fn finish(mut self) -> Cycle {
        let uid = &self.observed.cr.id.uid;
        let closed: BTreeSet<&ChildKey> = self.closed.iter().collect();
        // A name may have been rendered from children of a kind that cannot be read.
        let conclusive = self.complete && self.observed.unseen.is_empty();
        for child in &self.observed.children {
            let kind = &child.key.kind;
            let spared = is_kept_kind(kind) || self.spared.contains(kind);
            let superfluous = closed.contains(&child.key) || (conclusive && !spared);
            if superfluous
                && !self.wanted.contains(&child.key)
                && !child.record.deleting
                && child.record.is_ours(uid, &self.manager)
            {
                self.cycle.intents.push(Intent::Delete(Deletion {
                    key: child.key.clone(),
                    uid: child.record.id.uid.clone(),
                }));
            }
        }
        self.orphans();
        self.cycle.inventory = self.inventory();
        if self.observed.reported == Some(false) {
            let stays_gone = |index: usize| self.plan.children[index].stays_gone();
            let made = self.cycle.intents.iter().filter_map(|intent| match intent {
                Intent::Create(rendered) if stays_gone(rendered.declared) => {
                    Some(rendered.key.clone())
                }
                _ => None,
            });
            self.cycle.ahead = made.collect();
            self.cycle
                .inventory
                .made
                .extend(self.cycle.ahead.iter().cloned());
        }
        self.cycle
    }

    /// Returns the inventory: every declared kind, every kind that still has a child, every kind that cannot be read; and the
    /// children created once.
    fn inventory(&self) -> Inventory {
        let before = &self.observed.inventory;
        let declared = self.plan.kinds().map(ResourceType::group_kind);
        let mut kinds: BTreeSet<GroupKind> = declared.collect();
        kinds.extend(
            self.observed
                .children
                .iter()
                .map(|child| child.key.kind.clone()),
        );
        kinds.extend(before.kinds.intersection(&self.observed.unseen).cloned());
        let mut made = before.made.clone();
        if self.complete {
            made.retain(|key| self.declared_once.contains(key));
        }
        made.retain(|key| !self.unproven.contains(key));
        made.extend(
            self.declared_once
                .iter()
                .filter(|key| self.observed.child(key).is_some() && self.is_made(key))
                .cloned(),
        );
        let labels = self.cycle.labels.keys().cloned();
        Inventory {
            kinds,
            made,
            ended: before.ended.clone(),
            held: self.held.clone(),
            written_for: self.written_for(),
            labels: labels.collect(),
            finalizers: self.plan.other_finalizers.iter().cloned().collect(),
            excessive: false,
        }
    }

    /// Deletes the children that a previous custom resource of this name left and this one does not declare. Declared ones
    /// are adopted when they are applied.
    fn orphans(&mut self) {
        if !self.complete {
            return;
        }
        for orphan in &self.observed.orphans {
            let kind = &orphan.key.kind;
            let spared = is_kept_kind(kind) || self.spared.contains(kind);
            if !spared && !self.wanted.contains(&orphan.key) && !orphan.record.deleting {
                self.cycle.intents.push(Intent::Delete(Deletion {
                    key: orphan.key.clone(),
                    uid: orphan.record.id.uid.clone(),
                }));
            }
        }
    }
}

/// Kinds that hold data: they are never deleted only because they are no longer declared.
fn is_kept_kind(kind: &GroupKind) -> bool {
    kind.group.is_empty()
        && matches!(
            &*kind.kind,
            "PersistentVolumeClaim" | "PersistentVolume" | "Namespace"
        )
}
