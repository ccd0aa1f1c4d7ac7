//! One pass: what is wanted for a custom resource, decided from what was observed.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::{
    children::children_data,
    gate::Turns,
    inputs::{Around, Inputs},
    inventory::Inventory,
    marks::{self, Marks},
    reason::Reason,
    record::Observed,
    render::{Frame, RenderError, Renderer},
    sources::{Read, Sources},
};
use crate::{
    plan::{
        ChildKey, ChildPlan, GroupKind, Leaf, Mode, NameRule, ObjectKey, OnFalse, OperatorPlan,
    },
    template::{Budget, Entropy},
    value::{Node, hash},
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
    /// When another pass is due though nothing changes.
    pub wake: Option<Timestamp>,
    /// What the inventory calls made before it is, which saves the first pass a write. What is not made in the end must be
    /// taken out again before the pass is reported.
    pub ahead: BTreeSet<ChildKey>,
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
    let sources = match Sources::of(plan, observed, now) {
        Ok(sources) => sources,
        Err(reads) => return Step::Need(reads),
    };
    let mut cycle = decide(plan, scopes, (observed, &sources), now, entropy);
    cycle.sources = sources;
    Step::Done(Box::new(cycle))
}

fn decide(
    plan: &OperatorPlan,
    scopes: &Scopes,
    (observed, sources): (&Observed, &Sources),
    now: Timestamp,
    entropy: &Entropy,
) -> Cycle {
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
    let mut budget = Budget::default();
    let renderer = Renderer {
        data: &data,
        budget: &mut budget,
        frame,
    };
    let mut pass = Pass {
        plan,
        scopes,
        observed,
        manager,
        marks: Marks::of(plan, observed),
        renderer,
        around: &around,
        entropy,
        blocks: Vec::with_capacity(plan.blocks.len()),
        wanted: BTreeSet::new(),
        open: BTreeSet::new(),
        closed: Vec::new(),
        declared_once: BTreeSet::new(),
        complete: true,
        cycle: Cycle::default(),
    };
    pass.blocks();
    for index in 0..plan.children.len() {
        if let Err(failure) = pass.child(index) {
            pass.fail(failure);
        }
    }
    let mut cycle = pass.finish();
    cycle.wake = turns.first();
    cycle
}

struct Pass<'a, 'd> {
    plan: &'a OperatorPlan,
    scopes: &'a Scopes,
    observed: &'a Observed,
    manager: String,
    marks: Marks<'a>,
    renderer: Renderer<'a, 'd>,
    around: &'a Around<'d>,
    entropy: &'a Entropy,
    /// Whether the gate of each block is open.
    blocks: Vec<Result<bool, RenderError>>,
    /// Children that shall exist or stay.
    wanted: BTreeSet<ChildKey>,
    /// Those among them that a declaration with an open gate makes.
    open: BTreeSet<ChildKey>,
    /// Children whose gate is closed and that go, unless another declaration wants the same one.
    closed: Vec<ChildKey>,
    /// Every name that a plain `onCreate` entry declares, open or not.
    declared_once: BTreeSet<ChildKey>,
    /// Whether every name is known; else nothing may be concluded to be superfluous.
    complete: bool,
    cycle: Cycle,
}

impl Pass<'_, '_> {
    /// Evaluates the gates of the blocks, each once.
    fn blocks(&mut self) {
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
    fn fail(&mut self, failure: Failure) {
        if !self.cycle.failures.contains(&failure) {
            self.cycle.failures.push(failure);
        }
    }

    fn child(&mut self, index: usize) -> Result<(), Failure> {
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
    fn is_made(&self, key: &ChildKey) -> bool {
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

    fn key(&mut self, declared: &ChildPlan) -> Result<ChildKey, Failure> {
        let kind = declared.kind.group_kind();
        let Some(namespaced) = self.scopes.get(&kind).copied() else {
            return Err(Failure {
                reason: Reason::KindNotServed,
                at: declared.path.to_string(),
                message: format!(
                    "the API server serves no {kind} in version {}; install its CRD",
                    declared.kind.version
                ),
            });
        };
        let name = self.renderer.text(&declared.name)?;
        check_name(declared.name_rule, &declared.name, &name)?;
        let namespace = if namespaced {
            self.namespace(declared)?
        } else {
            None
        };
        if namespaced && namespace.is_none() {
            return Err(Failure {
                reason: Reason::InvalidName,
                at: declared.path.to_string(),
                message: format!(
                    "{kind} lives in a namespace and {} does not: say `namespace`",
                    self.plan.resource.kind
                ),
            });
        }
        Ok(ChildKey {
            kind,
            object: ObjectKey {
                namespace,
                name: name.into(),
            },
        })
    }

    /// The declared namespace; where that is left out, the custom resource's own.
    fn namespace(&mut self, declared: &ChildPlan) -> Result<Option<Box<str>>, Failure> {
        if let Some(leaf) = &declared.namespace {
            let text = self.renderer.text(leaf)?;
            if !text.is_empty() {
                check_name(NameRule::Label1123, leaf, &text)?;
                return Ok(Some(text.into()));
            }
        }
        Ok(self.observed.cr.id.key.namespace.clone())
    }

    fn render(
        &mut self,
        key: &ChildKey,
        declared: &ChildPlan,
        index: usize,
    ) -> Result<Rendered, RenderError> {
        let mut object = self.body(key, declared)?;
        self.marks.put(&mut object, key);
        let hash = hash(&object);
        marks::put_applied(&mut object, &hash);
        Ok(Rendered {
            key: key.clone(),
            declared: index,
            object,
            hash,
        })
    }

    /// The object without what ownership adds. What is made once may draw random bytes: each child its own, so that none
    /// depends on what else a pass makes.
    fn body(&mut self, key: &ChildKey, declared: &ChildPlan) -> Result<Node, RenderError> {
        let rendered = if declared.mode == Mode::Once {
            let purpose = format!("{} {key}", self.observed.cr.id.uid);
            let entropy = self.entropy.fork(&purpose);
            self.renderer.random_tree(&declared.body, &entropy)
        } else {
            self.renderer.tree(&declared.body)
        };
        Ok(rendered?.unwrap_or_default())
    }

    fn finish(mut self) -> Cycle {
        let uid = &self.observed.cr.id.uid;
        let closed: BTreeSet<&ChildKey> = self.closed.iter().collect();
        // A name may have been rendered from children of a kind that cannot be looked at.
        let conclusive = self.complete && self.observed.unseen.is_empty();
        for child in &self.observed.children {
            let superfluous =
                closed.contains(&child.key) || (conclusive && !is_kept_kind(&child.key.kind));
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
        self.cycle.inventory = self.inventory();
        if self.observed.reported == Some(false) {
            let made = self.cycle.intents.iter().filter_map(|intent| match intent {
                Intent::Create(rendered) => Some(rendered.key.clone()),
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

    /// Every declared kind, every kind that still has a child, every kind that cannot be looked at; and what was made once.
    fn inventory(&self) -> Inventory {
        let before = &self.observed.cr.inventory;
        let mut kinds: BTreeSet<GroupKind> = self
            .plan
            .children
            .iter()
            .map(|child| child.kind.group_kind())
            .collect();
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
        made.extend(
            self.declared_once
                .iter()
                .filter(|key| self.observed.child(key).is_some() && self.is_made(key))
                .cloned(),
        );
        Inventory { kinds, made }
    }
}

/// Kinds that hold data: they are never deleted because nobody declares them any more.
fn is_kept_kind(kind: &GroupKind) -> bool {
    kind.group.is_empty()
        && matches!(
            &*kind.kind,
            "PersistentVolumeClaim" | "PersistentVolume" | "Namespace"
        )
}

/// Whether a closed gate makes the child go.
fn goes(declared: &ChildPlan) -> bool {
    declared.mode == Mode::Reconciled && declared.on_false == OnFalse::Delete
}

fn check_name(rule: NameRule, leaf: &Leaf, name: &str) -> Result<(), Failure> {
    rule.check(name).map_err(|message| Failure {
        reason: Reason::InvalidName,
        at: leaf.path.to_string(),
        message,
    })
}
