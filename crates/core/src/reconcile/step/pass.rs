//! Which children shall be, one after the other.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Cycle, Failure, Intent, Scopes};
use crate::{
    plan::{ChildKey, ChildPlan, GroupKind, Mode, OnFalse, OperatorPlan},
    reconcile::{
        expand::Elements,
        inputs::Around,
        marks::Marks,
        reason::Reason,
        record::Observed,
        render::{Frame, RenderError, Renderer},
        sources::{Answer, Read},
    },
    template::{Budget, Entropy},
};

/// A pass on its way.
pub(super) struct Pass<'a, 'd> {
    pub(super) plan: &'a OperatorPlan,
    pub(super) scopes: &'a dyn Scopes,
    pub(super) observed: &'a Observed,
    pub(super) manager: String,
    pub(super) marks: Marks<'a>,
    pub(super) frame: Frame<'a>,
    pub(super) around: &'a Around<'d>,
    pub(super) entropy: &'a Entropy,
    pub(super) now: Timestamp,
    /// What must be known that is not.
    pub(super) needs: Vec<Read>,
    /// Whether the gate of each block is open.
    pub(super) blocks: Vec<Result<bool, RenderError>>,
    /// Whether the gate of the box is open.
    pub(super) whole: Result<bool, RenderError>,
    /// Children that shall exist or stay.
    pub(super) wanted: BTreeSet<ChildKey>,
    /// Those among them that a declaration with an open gate makes, and its place.
    pub(super) open: BTreeMap<ChildKey, usize>,
    /// Children whose gate is closed and that go, unless another declaration wants the same one.
    pub(super) closed: Vec<ChildKey>,
    /// Kinds of which declarations spare what nobody declares any more: the live world says which elements there are.
    pub(super) spared: BTreeSet<GroupKind>,
    /// Every name that a plain `onCreate` entry declares, open or not.
    pub(super) declared_once: BTreeSet<ChildKey>,
    /// Whether every name is known; else nothing may be concluded to be superfluous.
    pub(super) complete: bool,
    pub(super) cycle: Cycle,
}

impl Pass<'_, '_> {
    /// Evaluates the gate of the box.
    pub(super) fn whole(&mut self, renderer: &mut Renderer<'_, '_>) {
        *renderer.budget = Budget::default();
        self.whole = renderer.gate(&self.plan.hold.children);
    }

    /// Evaluates the gates of the blocks, each once.
    pub(super) fn blocks(&mut self) {
        for block in &self.plan.blocks {
            let mut budget = Budget::default();
            let open = match &self.whole {
                Ok(true) => self.around.of(block.import).and_then(|data| {
                    let mut renderer = Renderer {
                        data,
                        budget: &mut budget,
                        frame: self.frame,
                    };
                    renderer.gate(&block.gate)
                }),
                closed => closed.clone(),
            };
            self.blocks.push(open);
        }
    }

    /// Whether a closed gate makes the child go.
    fn goes(&self, declared: &ChildPlan) -> bool {
        let box_keeps = self.whole == Ok(false) && self.plan.hold.on_false == Some(OnFalse::Keep);
        goes(declared) && !box_keeps
    }

    /// What fails for several children for one cause, such as an input, is told once.
    pub(super) fn fail(&mut self, failure: Failure) {
        if !self.cycle.failures.contains(&failure) {
            self.cycle.failures.push(failure);
        }
    }

    /// Decides on one declaration: on its child, or on one for each element.
    pub(super) fn child(&mut self, index: usize) {
        let plan = self.plan;
        let declared = &plan.children[index];
        // A child that uses up its budget leaves the others theirs.
        let mut budget = Budget::default();
        let around = self.around;
        let data = match around.of(declared.import) {
            Ok(data) => data,
            Err(error) => return self.unknown(error.into()),
        };
        let mut renderer = Renderer {
            data,
            budget: &mut budget,
            frame: self.frame,
        };
        let Some(each) = &declared.for_each else {
            if let Err(failure) = self.one(&mut renderer, index) {
                self.fail(failure);
            }
            return;
        };
        let elements = match Elements::of(each, &renderer) {
            Ok(elements) => elements,
            Err(error) => return self.unknown(error.into()),
        };
        if !goes(declared) && declared.mode == Mode::Reconciled {
            self.spared.insert(declared.kind.group_kind());
        }
        for (place, data) in elements.data(data) {
            let mut renderer = Renderer {
                data: &data,
                budget: &mut budget,
                frame: self.frame,
            };
            if let Err(mut failure) = self.one(&mut renderer, index) {
                failure.message = format!("{place}: {}", failure.message);
                self.fail(failure);
            }
        }
    }

    /// Which children a declaration has is not known.
    fn unknown(&mut self, failure: Failure) {
        self.complete = false;
        self.fail(failure);
    }

    fn one(&mut self, renderer: &mut Renderer<'_, '_>, index: usize) -> Result<(), Failure> {
        let plan = self.plan;
        let declared = &plan.children[index];
        if Self::is_nowhere(renderer, declared) {
            return Ok(());
        }
        let key = self.key(renderer, declared).and_then(|key| {
            self.permit(declared, &key)?;
            Ok(key)
        });
        let open = match &self.blocks[declared.block] {
            Ok(true) => renderer.gate(&declared.gate),
            closed => closed.clone(),
        };
        let key = match key {
            Ok(key) => key,
            // Nobody wants it, so it needs no name: what it was called before is not declared any more.
            Err(_) if open == Ok(false) => {
                self.complete &= self.goes(declared);
                return Ok(());
            }
            Err(failure) => {
                self.complete = false;
                return Err(failure);
            }
        };
        if declared.stays_gone() {
            self.declared_once.insert(key.clone());
        }
        let open = match open {
            Ok(open) => open,
            Err(error) => {
                self.keep(key);
                return Err(error.into());
            }
        };
        if !open {
            if self.goes(declared) {
                self.closed.push(key);
            } else {
                self.keep(key);
            }
            return Ok(());
        }
        if let Some(other) = self.open.insert(key.clone(), index) {
            // One entry may come to the same namespace twice.
            let is_same = plan.children[other].path == declared.path;
            if declared.spread && declared.for_each.is_none() && is_same {
                return Ok(());
            }
            // Which name was meant is not known.
            self.complete = false;
            return Err(Failure {
                reason: Reason::DuplicateChild,
                at: declared.path.to_string(),
                message: match &declared.for_each {
                    None => {
                        format!("another entry makes {key} too; give one of them another name")
                    }
                    Some(_) => format!("another element or entry makes {key} too"),
                },
            });
        }
        self.open(renderer, key, index)
    }

    fn open(
        &mut self,
        renderer: &mut Renderer<'_, '_>,
        key: ChildKey,
        index: usize,
    ) -> Result<(), Failure> {
        let declared = &self.plan.children[index];
        if let Some(lasting) = &declared.lasting {
            return self.lasting(renderer, key, index, lasting);
        }
        if declared.mode == Mode::Once && self.is_made(&key) {
            self.look_for(&key);
            self.keep(key);
            return Ok(());
        }
        // A body that cannot be rendered says nothing of whether the object shall exist: it stays.
        let whole = match self.render(renderer, &key, declared, index) {
            Ok(whole) => Box::new(whole),
            Err(error) => {
                self.keep(key);
                return Err(error.into());
            }
        };
        self.want(
            key,
            match declared.mode {
                Mode::Once => Intent::Create(whole),
                Mode::Reconciled => Intent::Apply(whole),
            },
        );
        Ok(())
    }

    /// The child shall be as `intent` says.
    pub(super) fn want(&mut self, key: ChildKey, intent: Intent) {
        self.cycle
            .intents
            .retain(|intent| !matches!(intent, Intent::Keep(kept) if *kept == key));
        self.wanted.insert(key);
        self.cycle.intents.push(intent);
    }

    /// What came of a read; none where it has to be asked for, which the pass does when each child is looked at.
    pub(super) fn answer(&mut self, read: Read) -> Option<&Answer> {
        let observed = self.observed;
        let answer = observed.answers.get(&read);
        if answer.is_none() && !self.needs.contains(&read) {
            self.needs.push(read);
        }
        answer
    }

    /// Made before: the inventory says so, or it exists and is ours (a crash came between the write and the inventory).
    pub(super) fn is_made(&self, key: &ChildKey) -> bool {
        let remembered = self.observed.inventory.made.contains(key);
        (remembered && self.observed.reported != Some(false))
            || self
                .observed
                .child(key)
                .is_some_and(|record| record.is_ours(&self.observed.cr.id.uid, &self.manager))
    }

    /// Notes a child that was created once and is gone. It is not created again; nothing is missing where somebody else
    /// created an object of that name, nor of kinds whose objects end and are cleaned up.
    fn look_for(&mut self, key: &ChildKey) {
        let observed = self.observed;
        let ends = ["Job.batch", "Pod"]
            .map(GroupKind::parse)
            .contains(&key.kind);
        if ends || observed.child(key).is_some() || observed.unseen.contains(&key.kind) {
            return;
        }
        match self.answer(Read::Object(key.clone())) {
            None | Some(Answer::Ready(_)) => {}
            Some(Answer::Absent | Answer::Unavailable(_)) => self.cycle.missing.push(key.clone()),
        }
    }

    pub(super) fn keep(&mut self, key: ChildKey) {
        if self.wanted.insert(key.clone()) {
            self.cycle.intents.push(Intent::Keep(key));
        }
    }
}

/// Whether a closed gate makes the child go.
fn goes(declared: &ChildPlan) -> bool {
    declared.mode == Mode::Reconciled && declared.on_false == OnFalse::Delete
}
