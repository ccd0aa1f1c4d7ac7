//! Children that keep values, and custom resources that were restored from a backup.
//!
//! ```text
//!  inventory: written for this resource, or no uid ──► not restored: created
//!             written for another ─┬─ the child exists ─► adopted by the executor
//!                                  ├─ it does not, and the resource is younger than RESTORE_TIME ─► wait
//!                                  └─ else ─► created, with new values
//! ```
//!
//! The child itself has no owner reference, so that Kubernetes does not collect it before its new owner exists.

use jiff::SignedDuration;

use super::{Failure, Intent, pass::Pass};
use crate::reconcile::{
    inventory::WrittenFor,
    reason::Reason,
    sources::{Answer, Read},
};
use orkestra_plan::{ChildKey, ChildPlan};

/// How long after its creation a restored custom resource waits for the children that hold its values. Backup tools create
/// Secrets before custom resources; others create one object after the other, in some order.
const RESTORE_TIME: SignedDuration = SignedDuration::from_secs(30);

impl Pass<'_, '_> {
    /// Keeps a child that exists, and removes an owner reference from one that keeps values: earlier releases set it.
    pub(crate) fn keep_values(&mut self, key: ChildKey, declared: &ChildPlan) {
        let is_owned = self.observed.child(&key).is_some_and(|record| {
            let is_ours = record.is_ours(&self.observed.cr.id.uid, &self.manager);
            is_ours && record.controlled && !record.deleting
        });
        if is_owned && self.marks.outlasts(declared.keeps_values()) {
            self.wanted.insert(key.clone());
            self.cycle.intents.push(Intent::Unlink(key));
        } else {
            self.keep(key);
        }
    }

    /// True if only the inventory of a restored custom resource says that the child was created: it holds values, and is missing.
    pub(crate) fn is_unproven(&self, key: &ChildKey, declared: &ChildPlan) -> bool {
        self.is_restored() && declared.keeps_values() && self.observed.child(key).is_none()
    }

    fn is_restored(&self) -> bool {
        self.observed.inventory.written_for == WrittenFor::Another
    }

    /// Returns why a missing child that keeps values is not created yet: its custom resource was restored, and the child may
    /// follow.
    pub(crate) fn restored(&mut self, key: &ChildKey) -> Result<(), Failure> {
        let cr = &self.observed.cr;
        let created = cr.created().filter(|_| self.is_restored());
        let due = created.and_then(|created| created.checked_add(RESTORE_TIME).ok());
        let Some(due) = due.filter(|due| self.now < *due) else {
            return Ok(());
        };
        match self.answer(Read::Object(key.clone())) {
            Some(Answer::Ready(_)) => return Ok(()),
            None | Some(Answer::Absent | Answer::Unavailable(_)) => {}
        }
        self.is_restoring = true;
        self.frame.effects.at(due);
        self.keep(key.clone());
        Err(Failure {
            reason: Reason::RestorePending,
            at: key.to_string(),
            message: format!(
                "the custom resource was restored from a backup, and the object with its generated values is missing; new \
                 values are generated at {due}"
            ),
        })
    }

    /// Returns the custom resource that the inventory is written for, if its children may keep values.
    pub(crate) fn written_for(&self) -> WrittenFor {
        let mut declared = self.plan.children.iter();
        if self.is_restoring {
            WrittenFor::Another
        } else if declared.any(|child| self.marks.outlasts(child.keeps_values())) {
            WrittenFor::This
        } else {
            WrittenFor::Unrecorded
        }
    }
}
