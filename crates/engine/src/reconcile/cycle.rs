//! The decision of a pass: an intent for each child, and the data for the status.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use super::{
    differ::DesiredObject,
    failure::Failure,
    hold_reason::HoldReason,
    identity::Uid,
    inventory::Inventory,
    labels::{Labels, current_labels},
    record::{ChildRecord, Observed},
    scale::replicas,
    sources::Read,
    template_data::TemplateData,
};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, ChildPlan, OperatorPlan};

/// The result of a pass with the answers so far.
#[derive(Clone, Debug, PartialEq)]
pub enum StepResult {
    /// It needs more: read these, and call it again with all answers so far.
    Need(Vec<Read>),
    /// It is decided.
    Done(Box<Cycle>),
}

/// The decision of a pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cycle {
    /// An intent per child, in creation order; deletions last.
    pub intents: Vec<Intent>,
    /// Decisions that failed; the children concerned are left as they are.
    pub failures: Vec<Failure>,
    /// The inventory that must be on the custom resource before the first child is written.
    pub inventory: Inventory,
    /// The data that the pass used beside custom resource and children; the status uses the same.
    pub sources: TemplateData,
    /// The wanted labels of the custom resource.
    pub labels: Labels,
    /// When another pass is due even if nothing changes.
    pub wake: Option<Timestamp>,
    /// Why nothing is done, if the custom resource is held back: then only the condition that reports it is written.
    pub held_back: Option<HoldReason>,
    /// The condition of that gate that does not hold.
    pub unmet: Option<Box<str>>,
    /// The delay after which another pass follows a successful one.
    pub requeue: Option<Duration>,
    /// Children that were created once, are declared, and are gone.
    pub missing: Vec<ChildKey>,
    /// The comparisons that conditions could not make; such conditions do not hold, and nothing fails.
    pub doubts: Vec<Failure>,
    /// Children that the inventory lists as created before they are, which saves the first pass a write. Those that are not
    /// created must be removed from it before the pass is reported.
    pub ahead: BTreeSet<ChildKey>,
    /// Objects that are created and that the pods of an existing workload use: those roll in the pass after the creation.
    pub rolls_after: BTreeSet<ChildKey>,
}

impl Cycle {
    /// Returns a cycle that decides nothing and keeps everything as it is, with the reason.
    pub(crate) fn untouched(plan: &OperatorPlan, observed: &Observed, failure: Failure) -> Self {
        Self {
            failures: vec![failure],
            ..Self::deletion(plan, observed)
        }
    }

    /// True if everything could be decided, and all objects that are wanted exist.
    pub(crate) fn is_created(&self, observed: &Observed) -> bool {
        let exists = |intent: &Intent| match intent {
            Intent::Apply(rendered) | Intent::Create(rendered) => {
                observed.child(&rendered.key).is_some()
            }
            Intent::Keep(_) | Intent::Unlink(_) | Intent::Delete(_) => true,
        };
        self.failures.is_empty() && self.intents.iter().all(exists)
    }

    /// Returns a cycle that keeps everything as it is: the custom resource is deleted instead.
    pub(crate) fn deletion(plan: &OperatorPlan, observed: &Observed) -> Self {
        Self {
            inventory: Inventory::clone(&observed.inventory),
            labels: current_labels(plan, &observed.cr),
            ..Self::default()
        }
    }

    /// Completes the decision of the pass, with its data and the side results of conditions.
    pub(crate) fn over(mut self, sources: TemplateData) -> StepResult {
        self.wake = self.wake.into_iter().chain(sources.wake).min();
        self.doubts.extend(sources.doubts.iter().cloned());
        self.sources = sources;
        StepResult::Done(Box::new(self))
    }
}

impl From<Vec<Read>> for StepResult {
    fn from(reads: Vec<Read>) -> Self {
        Self::Need(reads)
    }
}

/// The intent for one child.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// Apply it exactly as rendered.
    Apply(Box<Rendered>),
    /// Create it once, if it does not exist.
    Create(Box<Rendered>),
    /// Keep it as it is.
    Keep(ChildKey),
    /// Keep it as it is, without its owner reference: it holds values that would be lost with it.
    Unlink(ChildKey),
    /// Delete it.
    Delete(Deletion),
}

/// A child to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Its key.
    pub key: ChildKey,
    /// The observed uid: another object of the same name is not deleted.
    pub uid: Uid,
}

/// A rendered child.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// Its key.
    pub key: ChildKey,
    /// The index of its declaration in [`OperatorPlan::children`].
    pub declared: usize,
    /// The whole object, with the `applied` annotation.
    pub object: Node,
    /// Hash of the object without that annotation.
    pub hash: String,
    /// What has to be a child of the same custom resource, or this one is not created: the Namespace that it is in, and the role
    /// that it binds.
    pub requires: Vec<ChildKey>,
    /// The live replica count from which `autoscale` decided the count in `object`; none if it did not, or the child did not
    /// exist.
    pub scaled_from: Option<i64>,
}

impl Rendered {
    /// True if the replica count was decided from one that is no longer live. Writing it would revert the change of
    /// another client, whose event queues the custom resource again.
    pub fn is_outdated(&self, record: &ChildRecord) -> bool {
        self.scaled_from
            .is_some_and(|from| replicas(record) != Some(from))
    }

    /// Returns the wanted state of the object, according to its declaration.
    pub fn wanted<'a>(&'a self, declared: &'a ChildPlan) -> DesiredObject<'a> {
        DesiredObject {
            object: &self.object,
            hash: &self.hash,
            take_held: declared.force_conflict,
            whole_lists: &declared.whole_lists,
        }
    }
}
