//! One pass: what is wanted for a custom resource, decided from what was observed.
//!
//! ```text
//!  Observed ── Sources::of ──► what is missing: Step::Need
//!                  │ `calls` ──► what is missing: Step::Need
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

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

pub(super) use self::object::{Place, key_of};
use self::pass::Pass;
use super::{
    calls,
    children::children_data,
    gate::Turns,
    inputs::Inputs,
    inventory::Inventory,
    labels::{Labels, labels},
    marks::Marks,
    reason::Reason,
    record::Observed,
    render::{Frame, RenderError},
    sources::{Read, Sources},
};
use crate::{
    plan::{ChildKey, GroupKind, OperatorPlan},
    template::Entropy,
    value::Node,
};

/// Scope of the kinds that are served at the moment: `true` for namespaced ones.
pub type Scopes = BTreeMap<GroupKind, bool>;

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
    /// What conditions could not compare; they do not hold for that, and nothing fails.
    pub doubts: Vec<Failure>,
    /// What the inventory calls made before it is, which saves the first pass a write. What is not made in the end must be
    /// taken out again before the pass is reported.
    pub ahead: BTreeSet<ChildKey>,
}

impl Cycle {
    /// Nothing is decided, and everything stays as it is: why.
    fn untouched(observed: &Observed, failure: Failure) -> Self {
        Self {
            failures: vec![failure],
            inventory: observed.cr.inventory.clone(),
            ..Self::default()
        }
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
    pub uid: Box<str>,
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
    scopes: &Scopes,
    observed: &Observed,
    now: Timestamp,
    entropy: &Entropy,
) -> Step {
    let sources = match Sources::of(plan, observed) {
        Ok(sources) => sources,
        Err(reads) => return Step::Need(reads),
    };
    let sources = match calls::make(plan, observed, sources, now) {
        Ok(sources) => sources,
        Err(read) => return Step::Need(vec![read]),
    };
    let decided = match &sources.failed {
        Some(failure) => Ok(Cycle::untouched(observed, failure.clone())),
        None => decide(plan, scopes, (observed, &sources), now, entropy),
    };
    match decided {
        Ok(mut cycle) => {
            cycle.sources = sources;
            Step::Done(Box::new(cycle))
        }
        Err(reads) => Step::Need(reads),
    }
}

/// The pass, or what it must know first.
fn decide(
    plan: &OperatorPlan,
    scopes: &Scopes,
    (observed, sources): (&Observed, &Sources),
    now: Timestamp,
    entropy: &Entropy,
) -> Result<Cycle, Vec<Read>> {
    let (manager, owner_kind) = (plan.field_manager(), plan.resource.group_kind());
    let turns = Turns::default();
    let frame = Frame {
        owner: (&owner_kind, &observed.cr.id.key),
        sources,
        turns: &turns,
    };
    let children = children_data(plan, observed, &manager, frame);
    let data = sources.data(observed).with("children", &children).at(now);
    let inputs = Inputs::of(plan, &data, frame);
    let around = inputs.around(data.clone());
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
        wanted: BTreeSet::new(),
        open: BTreeMap::new(),
        closed: Vec::new(),
        spared: BTreeSet::new(),
        declared_once: BTreeSet::new(),
        complete: true,
        cycle: Cycle::default(),
    };
    pass.blocks();
    for index in 0..plan.children.len() {
        pass.child(index);
    }
    if !pass.needs.is_empty() {
        return Err(pass.needs);
    }
    let (labels, failed) = labels(plan, &observed.cr, &data, frame);
    failed.into_iter().for_each(|failure| pass.fail(failure));
    pass.cycle.labels = labels;
    let mut cycle = pass.finish();
    cycle.wake = turns.first();
    cycle.doubts = turns.doubts();
    Ok(cycle)
}
