//! Which children shall be, one after the other.

use std::collections::BTreeSet;

use super::{Cycle, Failure, Intent, Scopes};
use crate::{
    plan::{ChildKey, ChildPlan, Mode, OnFalse, OperatorPlan},
    reconcile::{
        inputs::Around,
        marks::Marks,
        reason::Reason,
        record::Observed,
        render::{RenderError, Renderer},
    },
    template::{Budget, Entropy},
};

/// A pass on its way.
pub(super) struct Pass<'a, 'd> {
    pub(super) plan: &'a OperatorPlan,
    pub(super) scopes: &'a Scopes,
    pub(super) observed: &'a Observed,
    pub(super) manager: String,
    pub(super) marks: Marks<'a>,
    pub(super) renderer: Renderer<'a, 'd>,
    pub(super) around: &'a Around<'d>,
    pub(super) entropy: &'a Entropy,
    /// Whether the gate of each block is open.
    pub(super) blocks: Vec<Result<bool, RenderError>>,
    /// Children that shall exist or stay.
    pub(super) wanted: BTreeSet<ChildKey>,
    /// Those among them that a declaration with an open gate makes.
    pub(super) open: BTreeSet<ChildKey>,
    /// Children whose gate is closed and that go, unless another declaration wants the same one.
    pub(super) closed: Vec<ChildKey>,
    /// Every name that a plain `onCreate` entry declares, open or not.
    pub(super) declared_once: BTreeSet<ChildKey>,
    /// Whether every name is known; else nothing may be concluded to be superfluous.
    pub(super) complete: bool,
    pub(super) cycle: Cycle,
}

impl Pass<'_, '_> {
    /// Evaluates the gates of the blocks, each once.
    pub(super) fn blocks(&mut self) {
        for block in &self.plan.blocks {
            *self.renderer.budget = Budget::default();
            let open = self.around.of(block.import).and_then(|data| {
                self.renderer.data = data;
                self.renderer.gate(&block.gate)
            });
            self.blocks.push(open);
        }
    }

    /// What fails for several children for one cause, such as an input, is told once.
    pub(super) fn fail(&mut self, failure: Failure) {
        if !self.cycle.failures.contains(&failure) {
            self.cycle.failures.push(failure);
        }
    }

    /// Decides on one declaration.
    pub(super) fn child(&mut self, index: usize) -> Result<(), Failure> {
        let plan = self.plan;
        let declared = &plan.children[index];
        // A child that uses up its budget leaves the others theirs.
        *self.renderer.budget = Budget::default();
        self.renderer.data = match self.around.of(declared.import) {
            Ok(data) => data,
            Err(error) => {
                self.complete = false;
                return Err(error.into());
            }
        };
        let key = self.key(declared);
        let open = match &self.blocks[declared.block] {
            Ok(true) => self.renderer.gate(&declared.gate),
            closed => closed.clone(),
        };
        let key = match key {
            Ok(key) => key,
            // Nobody wants it, so it needs no name: what it was called before is not declared any more.
            Err(_) if open == Ok(false) => {
                self.complete &= goes(declared);
                return Ok(());
            }
            Err(failure) => {
                self.complete = false;
                return Err(failure);
            }
        };
        if declared.mode == Mode::Once {
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
            if goes(declared) {
                self.closed.push(key);
            } else {
                self.keep(key);
            }
            return Ok(());
        }
        if !self.open.insert(key.clone()) {
            // Which name was meant is not known.
            self.complete = false;
            return Err(Failure {
                reason: Reason::DuplicateChild,
                at: declared.path.to_string(),
                message: format!("another entry makes {key} too; give one of them another name"),
            });
        }
        self.open(key, index)
    }

    fn open(&mut self, key: ChildKey, index: usize) -> Result<(), Failure> {
        let declared = &self.plan.children[index];
        if declared.mode == Mode::Once && self.is_made(&key) {
            self.keep(key);
            return Ok(());
        }
        // A body that cannot be rendered says nothing of whether the object shall exist: it stays.
        let rendered = match self.render(&key, declared, index) {
            Ok(rendered) => Box::new(rendered),
            Err(error) => {
                self.keep(key);
                return Err(error.into());
            }
        };
        self.cycle
            .intents
            .retain(|intent| !matches!(intent, Intent::Keep(kept) if *kept == key));
        self.wanted.insert(key);
        self.cycle.intents.push(match declared.mode {
            Mode::Once => Intent::Create(rendered),
            Mode::Reconciled => Intent::Apply(rendered),
        });
        Ok(())
    }

    /// Made before: the inventory says so, or it exists and is ours (a crash came between the write and the inventory).
    pub(super) fn is_made(&self, key: &ChildKey) -> bool {
        let remembered = self.observed.cr.inventory.made.contains(key);
        (remembered && self.observed.reported != Some(false))
            || self
                .observed
                .child(key)
                .is_some_and(|record| record.is_ours(&self.observed.cr.id.uid, &self.manager))
    }

    fn keep(&mut self, key: ChildKey) {
        if self.wanted.insert(key.clone()) {
            self.cycle.intents.push(Intent::Keep(key));
        }
    }
}

/// Whether a closed gate makes the child go.
fn goes(declared: &ChildPlan) -> bool {
    declared.mode == Mode::Reconciled && declared.on_false == OnFalse::Delete
}
