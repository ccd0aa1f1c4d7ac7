//! One pass: decides the wanted state of a custom resource's children from what was observed.
//!
//! ```text
//!  Observed ── Sources::of ──► reads are missing: Step::Need; held back, or a call failed: Step::Done(Cycle)
//!                  │
//!               `pass`    gates of the blocks, then child by child: which to create, keep or delete
//!               `object`  a child's name, and its wanted state: `generated`, `copies` and `rolling` add data that
//!                         they request during rendering, and the pass is called again: Step::Need
//!               `rest`    undeclared children are deleted; the inventory for the next pass: Step::Done(Cycle)
//! ```

mod copies;
mod generated_secret;
mod object;
mod pass;
mod prune;
mod rolling;
mod scale;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use self::pass::Pass;
pub use self::targets::not_created;
pub(super) use self::{
    object::{NamespaceContext, key_of},
    targets::{Permit, permit},
};
use super::{
    child_metadata::ChildMetadata,
    children::children_data,
    cleanup::{self, Cleanup},
    differ::DesiredObject,
    hold_reason::{self, HoldReason},
    inputs::Inputs,
    inventory::Inventory,
    labels::{Labels, labels, worn_labels},
    reason::Reason,
    record::{ChildRecord, Observed, Uid},
    render::Renderer,
    render::{RenderError, Setting},
    sources::{Read, Sources},
};
use crate::{
    plan::{ChildKey, ChildPlan, GroupKind, OperatorPlan},
    template::{Budget, Entropy},
    value::Node,
};

/// The currently served kinds.
pub trait Scopes {
    /// Whether objects of that kind are namespaced. None if it is not served.
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool>;
}

impl Scopes for BTreeMap<GroupKind, bool> {
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool> {
        self.get(kind).copied()
    }
}

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
    pub sources: Sources,
    /// The wanted labels of the custom resource.
    pub labels: Labels,
    /// When another pass is due even if nothing changes.
    pub wake: Option<Timestamp>,
    /// Why nothing is done, if the custom resource is held back: then only its condition `Gated` is written.
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
}

impl Cycle {
    /// Returns a cycle that decides nothing and keeps everything as it is, with the reason.
    pub(super) fn untouched(plan: &OperatorPlan, observed: &Observed, failure: Failure) -> Self {
        Self {
            failures: vec![failure],
            ..Self::deletion(plan, observed)
        }
    }

    /// Returns a cycle that keeps everything as it is: the custom resource is deleted instead.
    fn deletion(plan: &OperatorPlan, observed: &Observed) -> Self {
        Self {
            inventory: Inventory::clone(&observed.inventory),
            labels: worn_labels(plan, &observed.cr),
            ..Self::default()
        }
    }

    /// Completes the decision of the pass, with its data and the side results of conditions.
    pub(super) fn over(mut self, sources: Sources) -> StepResult {
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
    /// The Namespace that has to be a child of the same custom resource; otherwise nothing is created in it.
    pub within: Option<ChildKey>,
    /// The live replica count from which `autoscale` decided the count in `object`; none if it did not, or the child did not
    /// exist.
    pub scaled_from: Option<i64>,
}

impl Rendered {
    /// True if the replica count was decided from one that is no longer live. Writing it would revert the change of somebody
    /// else, whose event queues the custom resource again.
    pub fn is_outdated(&self, record: &ChildRecord) -> bool {
        self.scaled_from
            .is_some_and(|from| scale::replicas(record) != Some(from))
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

/// A failure about one child, or about the whole pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// The child, if its name is known; else the path in the Katalog.
    pub at: String,
    /// The problem, and the fix if there is one.
    pub message: String,
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        Self {
            reason: error.reason,
            at: error.path.into(),
            message: error.message,
        }
    }
}

/// Decides one pass over a custom resource that is not being deleted, or returns the reads that it needs first. `scopes`
/// holds the served kinds, `now` is the present time for templates: the same for every call of a pass, and for its status.
/// `entropy` is the pass's own source, from which children that are created once draw.
pub fn step(
    plan: &OperatorPlan,
    scopes: &dyn Scopes,
    observed: &Observed,
    now: Timestamp,
    entropy: &Entropy,
) -> StepResult {
    let mut sources = match Sources::of(plan, observed, now) {
        Ok(sources) => sources,
        Err(step) => return step,
    };
    cleanup::evaluate(plan, observed, &mut sources, now);
    if sources.cleanup == Some(Cleanup::Due) {
        return Cycle::deletion(plan, observed).over(sources);
    }
    match decide(plan, scopes, (observed, &sources), now, entropy) {
        Ok(cycle) => cycle.over(sources),
        Err(reads) => StepResult::Need(reads),
    }
}

/// Returns a cycle in which no child is created, changed or deleted: the custom resource is invalid.
fn refused(
    plan: &OperatorPlan,
    (observed, sources): (&Observed, &Sources),
    labels: Labels,
    failed: Vec<Failure>,
) -> Cycle {
    let mut failures = sources.prepared.failures.clone();
    failures.extend(failed);
    let inventory = Inventory {
        labels: labels.keys().cloned().collect(),
        finalizers: plan.other_finalizers.iter().cloned().collect(),
        ..Inventory::clone(&observed.inventory)
    };
    Cycle {
        failures,
        inventory,
        labels,
        ..Cycle::default()
    }
}

/// Returns the decision of the pass, or the reads that it needs first.
// Over 60 lines: a line for each field of the pass that it starts.
fn decide(
    plan: &OperatorPlan,
    scopes: &dyn Scopes,
    (observed, sources): (&Observed, &Sources),
    now: Timestamp,
    entropy: &Entropy,
) -> Result<Cycle, Vec<Read>> {
    let (manager, setting) = (plan.field_manager(), Setting::of(plan, observed));
    let frame = setting.frame(sources);
    let children = children_data(plan, observed, &manager, frame);
    let data = sources.data(observed).with("children", &children).at(now);
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
    let (labels, failed) = labels(plan, &observed.cr, &data, frame);
    if sources.is_refused() {
        return Ok(refused(plan, (observed, sources), labels, failed));
    }
    let mut pass = Pass {
        plan,
        scopes,
        observed,
        manager,
        marks: ChildMetadata::of(plan, observed),
        frame,
        around: &around,
        entropy,
        now,
        needs: Vec::new(),
        blocks: Vec::with_capacity(plan.blocks.len()),
        whole: Ok(true),
        wanted: BTreeSet::new(),
        open: BTreeMap::new(),
        closed: Vec::new(),
        spared: BTreeSet::new(),
        declared_once: BTreeSet::new(),
        complete: true,
        copied: 0,
        cycle: Cycle::default(),
    };
    let mut budget = Budget::default();
    let mut renderer = Renderer {
        data: &data,
        budget: &mut budget,
        frame,
    };
    let requeue = hold_reason::requeue(plan, &mut renderer);
    pass.whole(&mut renderer);
    pass.blocks();
    for index in 0..plan.children.len() {
        pass.child(index);
    }
    if !pass.needs.is_empty() {
        return Err(pass.needs);
    }
    for failure in failed {
        pass.fail(failure);
    }
    pass.cycle.labels = labels;
    let mut cycle = pass.finish();
    cycle.requeue = requeue;
    cycle.wake = setting.effects.first();
    cycle.doubts = setting.effects.doubts();
    Ok(cycle)
}
