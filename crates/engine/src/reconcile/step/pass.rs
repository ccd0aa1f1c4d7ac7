//! Decides which children should exist, one after the other.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{Cycle, Failure, Intent, ServedScopes};
use crate::reconcile::{
    child_metadata::ChildMetadata,
    expand::Elements,
    inputs::TemplateRoots,
    reason::Reason,
    record::Observed,
    render::{Frame, RenderError, Renderer},
    sources::{Answer, Read},
};
use orkestra_plan::{ChildKey, ChildPlan, GroupKind, Mode, OnFalsePlan, OperatorPlan};
use orkestra_template::{Entropy, EvalBudget};

/// A pass in progress.
pub(crate) struct Pass<'a, 'd> {
    pub(crate) plan: &'a OperatorPlan,
    pub(crate) scopes: &'a dyn ServedScopes,
    pub(crate) observed: &'a Observed,
    pub(crate) manager: String,
    pub(crate) marks: ChildMetadata<'a>,
    pub(crate) frame: Frame<'a>,
    pub(crate) around: &'a TemplateRoots<'d>,
    pub(crate) entropy: &'a Entropy,
    pub(crate) now: Timestamp,
    /// Reads without an answer.
    pub(crate) needs: Vec<Read>,
    /// Whether the gate of each block is open.
    pub(crate) blocks: Vec<Result<bool, RenderError>>,
    /// Whether the gate of the box is open.
    pub(crate) whole: Result<bool, RenderError>,
    /// Children that should exist or stay.
    pub(crate) wanted: BTreeSet<ChildKey>,
    /// Those of them that a declaration with an open gate creates, with its index.
    pub(crate) open: BTreeMap<ChildKey, usize>,
    /// Children with a closed gate that are deleted, unless another declaration wants the same one.
    pub(crate) closed: Vec<ChildKey>,
    /// Kinds whose undeclared children are kept: their elements come from live data.
    pub(crate) spared: BTreeSet<GroupKind>,
    /// Every name that a plain `onCreate` entry declares, with an open or closed gate.
    pub(crate) declared_once: BTreeSet<ChildKey>,
    /// The children that keep values of which only a restored inventory says that they were created.
    pub(crate) unproven: BTreeSet<ChildKey>,
    /// Whether a restored custom resource waits for some of them.
    pub(crate) is_restoring: bool,
    /// The records of the texts that the custom resource holds.
    pub(crate) held: BTreeSet<Box<str>>,
    /// Whether every name is known; else no child may be considered undeclared.
    pub(crate) complete: bool,
    /// The bytes of the objects that were copied so far.
    pub(crate) copied: usize,
    pub(crate) cycle: Cycle,
}

impl Pass<'_, '_> {
    /// Evaluates the gate of the box.
    pub(crate) fn whole(&mut self, renderer: &mut Renderer<'_, '_>) {
        *renderer.budget = EvalBudget::default();
        self.whole = renderer.gate(&self.plan.hold.children);
    }

    /// Evaluates the gates of the blocks, each once.
    pub(crate) fn blocks(&mut self) {
        for block in &self.plan.blocks {
            let mut budget = EvalBudget::default();
            let open = match &self.whole {
                Ok(true) => (self.around.of(block.import))
                    .and_then(|data| self.frame.renderer(data, &mut budget).gate(&block.gate)),
                closed => closed.clone(),
            };
            self.blocks.push(open);
        }
    }

    /// True if a closed gate deletes the child.
    fn goes(&self, declared: &ChildPlan) -> bool {
        let box_keeps =
            self.whole == Ok(false) && self.plan.hold.on_false == Some(OnFalsePlan::Keep);
        goes(declared) && !box_keeps
    }

    /// Adds a failure; one that several children share, such as a failed input, is reported once.
    pub(crate) fn fail(&mut self, failure: Failure) {
        if !self.cycle.failures.contains(&failure) {
            self.cycle.failures.push(failure);
        }
    }

    /// Decides on one declaration: on its child, or on one for each element.
    pub(crate) fn child(&mut self, index: usize) {
        let plan = self.plan;
        let declared = &plan.children[index];
        let hook = plan.hook_of(declared.block);
        if hook.is_some_and(|hook| self.frame.sources.hooks.is_waiting(hook)) {
            self.spared.insert(declared.kind.group_kind());
            return;
        }
        // A child that exhausts its budget does not affect the budget of others.
        let mut budget = EvalBudget::default();
        let around = self.around;
        let data = match around.of(declared.import) {
            Ok(data) => data,
            Err(error) => return self.unknown(error.into()),
        };
        let mut renderer = self.frame.renderer(data, &mut budget);
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
            let mut renderer = self.frame.renderer(&data, &mut budget);
            if let Err(mut failure) = self.one(&mut renderer, index) {
                failure.message = format!("{place}: {}", failure.message);
                self.fail(failure);
            }
        }
    }

    /// Records that the children of a declaration are unknown.
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
            // It is not wanted, so it needs no name: its earlier name is no longer declared.
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
            // One entry may render the same namespace twice.
            let is_same = plan.children[other].path == declared.path;
            if declared.spread && declared.for_each.is_none() && is_same {
                return Ok(());
            }
            // The intended name is unknown.
            self.complete = false;
            return Err(duplicate(declared, &key));
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
        if let Some(generated) = &declared.generated {
            return self.generated_secret(renderer, key, index, generated);
        }
        let is_unproven = self.is_unproven(&key, declared);
        if is_unproven {
            self.unproven.insert(key.clone());
        }
        let is_made = self.is_made(&key) && !is_unproven;
        if declared.mode == Mode::Once && is_made {
            self.look_for(&key);
            self.keep_values(key, declared);
            return Ok(());
        }
        if declared.keeps_values() && self.observed.child(&key).is_none() {
            self.restored(&key)?;
        }
        // A body that cannot be rendered does not decide whether the object should exist: it stays.
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

    /// Sets the intent for a child.
    pub(crate) fn want(&mut self, key: ChildKey, intent: Intent) {
        self.cycle.intents.retain(
            |intent| !matches!(intent, Intent::Keep(kept) | Intent::Unlink(kept) if *kept == key),
        );
        self.wanted.insert(key);
        self.cycle.intents.push(intent);
    }

    /// Returns the answer to a read; none if it has to be requested, which the pass does after all children.
    pub(crate) fn answer(&mut self, read: Read) -> Option<&Answer> {
        let observed = self.observed;
        let answer = observed.answers.get(&read);
        if answer.is_none() && !self.needs.contains(&read) {
            self.needs.push(read);
        }
        answer
    }

    /// True if it was created before: the inventory lists it, or it exists and is ours (after a crash between the write and
    /// the inventory).
    pub(crate) fn is_made(&self, key: &ChildKey) -> bool {
        let remembered = self.observed.inventory.made.contains(key);
        (remembered && self.observed.reported != Some(false))
            || self
                .observed
                .child(key)
                .is_some_and(|record| record.is_ours(&self.observed.cr.id.uid, &self.manager))
    }

    /// Records a child that was created once and is gone. It is not created again; it does not count as missing if another
    /// client created an object of that name, or if objects of its kind end and are cleaned up.
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

    pub(crate) fn keep(&mut self, key: ChildKey) {
        if self.wanted.insert(key.clone()) {
            self.cycle.intents.push(Intent::Keep(key));
        }
    }
}

/// True if a closed gate deletes the child.
fn goes(declared: &ChildPlan) -> bool {
    declared.mode == Mode::Reconciled && declared.on_false == OnFalsePlan::Delete
}

/// Returns the failure of a child that was already made under the same name.
fn duplicate(declared: &ChildPlan, key: &ChildKey) -> Failure {
    Failure {
        reason: Reason::DuplicateChild,
        at: declared.path.to_string(),
        message: match &declared.for_each {
            None => format!("another entry also declares {key}; rename one of them"),
            Some(_) => format!("another element or entry also creates {key}"),
        },
    }
}
