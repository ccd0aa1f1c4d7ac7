//! One pass: what is wanted for a custom resource, decided from what was observed.
//!
//! ```text
//!  Observed ── Sources::of ──► what is missing: Step::Need; held back, or a call failed: Step::Done(Cycle)
//!                  │
//!               `pass`    gates of the blocks, then child by child: which shall be, stay or go
//!               `object`  a child's name, and the child as it shall be: `lasting`, `copies` and `rolling` add to it what is
//!                         asked for while it is rendered, and the pass is called again: Step::Need
//!               `rest`    what nobody declares any more goes; what is remembered: Step::Done(Cycle)
//! ```

mod copies;
mod lasting;
mod object;
mod pass;
mod rest;
mod rolling;
mod scale;
mod targets;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use self::pass::Pass;
pub use self::targets::not_created;
pub(super) use self::{
    object::{Place, key_of},
    targets::{Permit, permit},
};
use super::{
    children::children_data,
    differ::Wanted,
    held::{self, Held},
    inputs::Inputs,
    inventory::Inventory,
    labels::{Labels, labels, worn_labels},
    marks::Marks,
    reason::Reason,
    record::{Observed, Uid},
    render::Renderer,
    render::{RenderError, Setting},
    sources::{Read, Sources},
};
use crate::{
    plan::{ChildKey, ChildPlan, GroupKind, OperatorPlan},
    template::{Budget, Entropy},
    value::Node,
};

/// The kinds that are served at the moment.
pub trait Scopes {
    /// Whether objects of that kind live in namespaces. None where it is not served.
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool>;
}

impl Scopes for BTreeMap<GroupKind, bool> {
    fn is_namespaced(&self, kind: &GroupKind) -> Option<bool> {
        self.get(kind).copied()
    }
}

/// How far a pass came with what it was told.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It must know more: these are read, and it is called again with all answers so far.
    Need(Vec<Read>),
    /// It is decided.
    Done(Box<Cycle>),
}

/// What a pass decided.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cycle {
    /// An intent per child, in creation order; deletions last.
    pub intents: Vec<Intent>,
    /// What could not be decided; the children concerned are left as they are.
    pub failures: Vec<Failure>,
    /// The inventory that must be on the custom resource before the first child is written.
    pub inventory: Inventory,
    /// What the pass saw beside custom resource and children; the status is made from the same.
    pub sources: Sources,
    /// The labels that the custom resource shall have.
    pub labels: Labels,
    /// When another pass is due though nothing changes.
    pub wake: Option<Timestamp>,
    /// Why nothing is done, where the custom resource is held back: then nothing is written but its condition `Gated`.
    pub held_back: Option<Held>,
    /// The condition of that gate that does not hold.
    pub unmet: Option<Box<str>>,
    /// How long after the pass another one follows, if it goes well.
    pub requeue: Option<Duration>,
    /// Children that were created once, are declared, and are gone.
    pub missing: Vec<ChildKey>,
    /// What conditions could not compare; they do not hold for that, and nothing fails.
    pub doubts: Vec<Failure>,
    /// What the inventory calls made before it is, which saves the first pass a write. What is not made in the end must be
    /// taken out again before the pass is reported.
    pub ahead: BTreeSet<ChildKey>,
}

impl Cycle {
    /// Nothing is decided, and everything stays as it is: why.
    pub(super) fn untouched(plan: &OperatorPlan, observed: &Observed, failure: Failure) -> Self {
        Self {
            failures: vec![failure],
            inventory: Inventory::clone(&observed.inventory),
            labels: worn_labels(plan, &observed.cr),
            ..Self::default()
        }
    }

    /// The pass is decided, with what it saw and what conditions said on the way.
    pub(super) fn over(mut self, sources: Sources) -> Step {
        self.wake = self.wake.into_iter().chain(sources.wake).min();
        self.doubts.extend(sources.doubts.iter().cloned());
        self.sources = sources;
        Step::Done(Box::new(self))
    }
}

impl From<Vec<Read>> for Step {
    fn from(reads: Vec<Read>) -> Self {
        Self::Need(reads)
    }
}

/// What is wanted of one child.
#[derive(Clone, Debug, PartialEq)]
pub enum Intent {
    /// It shall be exactly as rendered.
    Apply(Box<Rendered>),
    /// It shall be made once, if it does not exist.
    Create(Box<Rendered>),
    /// It stays as it is.
    Keep(ChildKey),
    /// It goes.
    Delete(Deletion),
}

/// A child that goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Which one.
    pub key: ChildKey,
    /// The uid that was seen: another object of the name is not meant.
    pub uid: Uid,
}

/// A child as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendered {
    /// Which one.
    pub key: ChildKey,
    /// Position of its declaration in [`OperatorPlan::children`].
    pub declared: usize,
    /// The whole object, with the `applied` annotation.
    pub object: Node,
    /// Hash of the object without that annotation.
    pub hash: String,
    /// The Namespace that has to be a child of the same custom resource, or nothing is created in it.
    pub within: Option<ChildKey>,
}

impl Rendered {
    /// What the object shall be, as its declaration says.
    pub fn wanted<'a>(&'a self, declared: &'a ChildPlan) -> Wanted<'a> {
        Wanted {
            object: &self.object,
            hash: &self.hash,
            take_held: declared.force_conflict,
            whole_lists: &declared.whole_lists,
        }
    }
}

/// Something about one child, or about the whole pass, that did not work out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The fixed name.
    pub reason: Reason,
    /// Which child, where its name is known; else where in the Katalog.
    pub at: String,
    /// What is wrong, and the mend where there is one.
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

/// Decides one pass over a custom resource that is not being deleted, or says what it must know first. `scopes` holds the
/// kinds that are served, `now` is what templates take for the present time: the same for every call of a pass, and for its
/// status. `entropy` is a source of the pass's own, from which the children that are made once draw.
pub fn step(
    plan: &OperatorPlan,
    scopes: &dyn Scopes,
    observed: &Observed,
    now: Timestamp,
    entropy: &Entropy,
) -> Step {
    let sources = match Sources::of(plan, observed, now) {
        Ok(sources) => sources,
        Err(step) => return step,
    };
    match decide(plan, scopes, (observed, &sources), now, entropy) {
        Ok(cycle) => cycle.over(sources),
        Err(reads) => Step::Need(reads),
    }
}

/// No child is made, changed or deleted: the custom resource is not as it must be.
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

/// The pass, or what it must know first.
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
        marks: Marks::of(plan, observed),
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
        cycle: Cycle::default(),
    };
    let mut budget = Budget::default();
    let mut renderer = Renderer {
        data: &data,
        budget: &mut budget,
        frame,
    };
    let requeue = held::requeue(plan, &mut renderer);
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
    cycle.wake = setting.turns.first();
    cycle.doubts = setting.turns.doubts();
    Ok(cycle)
}
