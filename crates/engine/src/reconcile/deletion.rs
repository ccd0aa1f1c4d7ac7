//! The deletion of a custom resource: the completed steps of `onDelete`, and the next ones.
//!
//! ```text
//!  Observed, deleting ── finish ──► Ending: Jobs to create, children to delete, objects to wait for
//!                                     │ runtime: writes, then waits for an event or the deadline
//!                                     └─ nothing left ──► children that Kubernetes does not collect are deleted, then our finalizer
//! ```
//!
//! Each pass decides again. The inventory records what a pass cannot observe: the Jobs that were created, since a finished Job may
//! have been deleted.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{
    child_metadata::ChildMetadata,
    collect,
    cycle::Deletion,
    expand::Elements,
    failure::Failure,
    hooks::{self, HookState},
    inventory::Inventory,
    kstatus::Readiness,
    reason::Reason,
    record::Observed,
    render::{Frame, RenderError, Renderer, Setting},
    sources::Read,
    step::{NamespaceContext, Permit, ServedScopes, key_of, not_created, permit},
    view::PassView,
};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, ChildPlan, ManagedKind, OnDeletePlan, OnDeleteStep, OperatorPlan};
use orkestra_template::{Data, Entropy, EvalBudget};

/// The next step for a custom resource that is being deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeletionStep {
    /// Jobs to create, once.
    pub make: Vec<OnDeleteJob>,
    /// Children to delete.
    pub delete: Vec<Deletion>,
    /// Objects to wait for: running Jobs, and children that are being deleted.
    pub awaited: Vec<ChildKey>,
    /// Decisions that failed; the resource stays until they can be made.
    pub failures: Vec<Failure>,
    /// The step in progress.
    pub step: Option<Box<str>>,
    /// Whether the deadline has passed: nothing more is started.
    pub late: bool,
    /// Reads needed for a decision; with their answers in the observed state, it is made again.
    pub needs: Vec<Read>,
    /// When the deadline passes, or the result of a condition changes.
    pub wake: Option<Timestamp>,
    /// The inventory after the Jobs are created.
    pub inventory: Inventory,
}

/// A Job of `onDelete`.
#[derive(Clone, Debug, PartialEq)]
pub struct OnDeleteJob {
    /// Its key.
    pub key: ChildKey,
    /// The whole object. It has no owner reference: it outlives objects that are collected with the resource.
    pub object: Node,
    /// True if it may contain values of Secrets: messages of the API server about it are withheld.
    pub shows_secrets: bool,
}

impl DeletionStep {
    /// True if nothing of `onDelete` is left.
    pub fn is_done(&self) -> bool {
        self.make.is_empty()
            && self.delete.is_empty()
            && self.awaited.is_empty()
            && self.failures.is_empty()
            && self.needs.is_empty()
            && self.step.is_none()
            && !self.late
    }
}

/// Returns the next step for a custom resource that is being deleted. Templates see only it and its children.
pub fn finish(
    plan: &OperatorPlan,
    scopes: &dyn ServedScopes,
    observed: &Observed,
    now: Timestamp,
    entropy: &Entropy,
) -> DeletionStep {
    if let Some(asked) = finalize(plan, observed, now) {
        return asked;
    }
    let Some(declared) = &plan.on_delete else {
        return DeletionStep::default();
    };
    let (manager, setting) = (plan.field_manager(), Setting::of(plan, observed));
    let sources = collect::for_deletion(plan, observed, now);
    let view = PassView::of(plan, (observed, &sources), &setting, now);
    let (frame, data) = (view.frame, view.data());
    let mut end = DeletionPass {
        place: NamespaceContext {
            plan,
            scopes,
            observed,
        },
        manager: &manager,
        marks: ChildMetadata::of(plan, observed),
        frame,
        entropy,
        known: BTreeSet::new(),
        deletion: DeletionStep {
            inventory: Inventory::clone(&observed.inventory),
            ..DeletionStep::default()
        },
    };
    end.steps(declared, &data);
    let mut deletion = end.deletion;
    let deadline = observed
        .cr
        .deleted
        .and_then(|deleted| deleted.checked_add(declared.timeout).ok());
    if let Some(deadline) = deadline.filter(|_| !deletion.is_done()) {
        deletion.late = deadline <= now;
        deletion.wake = Some(deadline).filter(|_| !deletion.late);
    }
    if deletion.late {
        deletion.make.clear();
        deletion.delete.clear();
        deletion.needs.clear();
        deletion.inventory = Inventory::clone(&observed.inventory);
    }
    deletion.wake = deletion
        .wake
        .into_iter()
        .chain(setting.effects.first())
        .chain(sources.wake)
        .min();
    deletion
}

/// Asks the hooks that a custom resource is finalized by, one after the other. Returns the step of the first that has something
/// left to do; none if none has.
fn finalize(plan: &OperatorPlan, observed: &Observed, now: Timestamp) -> Option<DeletionStep> {
    let mut deletion = DeletionStep {
        inventory: Inventory::clone(&observed.inventory),
        ..DeletionStep::default()
    };
    let meant = plan.hooks.iter().enumerate();
    for (place, hook) in meant.filter(|(_, hook)| hook.url(true).is_some()) {
        let setting = Setting::of(plan, observed);
        let sources = collect::for_deletion(plan, observed, now);
        let response = match hooks::ask((plan, place), (observed, &sources), &setting, now, true) {
            HookState::Closed | HookState::Unanswered => continue,
            HookState::Answered(response) if response.finalized => continue,
            HookState::Answered(response) => response,
            HookState::Needs(read) => {
                deletion.needs.push(read);
                return Some(deletion);
            }
            HookState::Failed(failure) => {
                deletion.failures.push(failure);
                return Some(deletion);
            }
        };
        deletion.step = Some(format!("hook `{}`", hook.name).into());
        let wake = response
            .requeue_after
            .and_then(|delay| now.checked_add(delay).ok());
        deletion.wake = wake;
        // Children that it no longer returns go first; those that it returns stay as they are.
        let manager = plan.field_manager();
        for child in &observed.children {
            let of_kind = |one: &&ManagedKind| one.kind.group_kind() == child.key.kind;
            let Some(known) = hook.managed.iter().find(of_kind) else {
                continue;
            };
            let is_ours = child.record.is_ours(&observed.cr.id.uid, &manager);
            if !is_ours || response.returns(&known.kind, &child.key, observed) {
                continue;
            }
            if child.record.deleting {
                deletion.awaited.push(child.key.clone());
            } else {
                deletion.delete.push(Deletion {
                    key: child.key.clone(),
                    uid: child.record.id.uid.clone(),
                });
            }
        }
        return Some(deletion);
    }
    None
}

struct DeletionPass<'a> {
    place: NamespaceContext<'a>,
    manager: &'a str,
    marks: ChildMetadata<'a>,
    frame: Frame<'a>,
    entropy: &'a Entropy,
    /// All objects that entries refer to.
    known: BTreeSet<ChildKey>,
    deletion: DeletionStep,
}

impl DeletionPass<'_> {
    fn steps(&mut self, declared: &OnDeletePlan, data: &Data<'_>) {
        if !self.open(&declared.block.gate, data) {
            return;
        }
        for step in &declared.steps {
            if self.open(&step.gate, data) {
                self.step(step, data);
            }
            if self.deletion.is_done() {
                continue;
            }
            if declared.ordered {
                self.deletion.step = Some(step.name.clone());
                return;
            }
        }
    }

    /// True if a gate is open; if that is unknown, nothing continues.
    fn open(&mut self, gate: &orkestra_plan::Gate, data: &Data<'_>) -> bool {
        let mut budget = EvalBudget::default();
        let open = self.frame.renderer(data, &mut budget).gate(gate);
        open.unwrap_or_else(|error| {
            self.deletion.failures.push(error.into());
            false
        })
    }

    fn step(&mut self, step: &OnDeleteStep, data: &Data<'_>) {
        for job in &step.made {
            self.entry(job, data, DeletionPass::make);
        }
        for child in &step.deleted {
            self.entry(child, data, DeletionPass::delete);
        }
    }

    /// Processes one entry, or each element for which it is expanded.
    fn entry(&mut self, entry: &ChildPlan, data: &Data<'_>, what: EntryAction<Self>) {
        let mut budget = EvalBudget::default();
        let mut renderer = self.frame.renderer(data, &mut budget);
        let result = match &entry.for_each {
            None => self.one(entry, &mut renderer, what),
            Some(each) => match Elements::of(each, &renderer) {
                Err(error) => Err(error.into()),
                Ok(elements) => elements.data(data).try_for_each(|(_, data)| {
                    let mut renderer = self.frame.renderer(&data, &mut budget);
                    self.one(entry, &mut renderer, what)
                }),
            },
        };
        if let Err(failure) = result {
            self.deletion.failures.push(failure);
        }
    }

    fn one(
        &mut self,
        entry: &ChildPlan,
        renderer: &mut Renderer<'_, '_>,
        what: EntryAction<Self>,
    ) -> Result<(), Failure> {
        if !renderer.gate(&entry.gate)? {
            return Ok(());
        }
        let key = key_of(self.place, renderer, entry)?;
        if !self.known.insert(key.clone()) {
            return Err(Failure {
                reason: Reason::DuplicateChild,
                at: entry.path.to_string(),
                message: format!("another entry of `onDelete` also refers to {key}"),
            });
        }
        what(self, entry, renderer, key).map_err(Failure::from)
    }

    /// A Job: created once, and done when it is complete or has failed. A Job that was created and is gone has ended.
    fn make(
        &mut self,
        entry: &ChildPlan,
        renderer: &mut Renderer<'_, '_>,
        key: ChildKey,
    ) -> Result<(), RenderError> {
        let observed = self.place.observed;
        let uid = &observed.cr.id.uid;
        let found = observed
            .child(&key)
            .filter(|record| record.is_uncollected(uid, self.manager));
        if let Some(job) = found {
            self.deletion.inventory.ended.insert(key.clone());
            if matches!(job.readiness(), Readiness::InProgress(_)) && !job.deleting {
                self.deletion.awaited.push(key);
            }
            return Ok(());
        }
        if observed.inventory.ended.contains(&key) {
            return Ok(());
        }
        match permit(self.place, &observed.answers, entry, &key)? {
            Permit::Granted => {}
            Permit::Needs(read) => {
                self.deletion.needs.push(read);
                return Ok(());
            }
            Permit::IfCreated(namespace) => {
                let created = observed.child(&namespace);
                if !created.is_some_and(|record| record.is_ours(uid, self.manager)) {
                    return Err(RenderError {
                        path: key.to_string().into(),
                        message: not_created(&namespace.object.name),
                        reason: Reason::TargetRefused,
                    });
                }
            }
        }
        let purpose = format!("{} {key} at the end", observed.cr.id.uid);
        let entropy = self.entropy.fork(&purpose);
        let object = renderer.random_tree(&entry.body, &entropy)?;
        let mut object = object.unwrap_or_default();
        self.marks.put_unowned(&mut object, &key);
        self.deletion.inventory.ended.insert(key.clone());
        self.deletion.make.push(OnDeleteJob {
            key,
            object,
            shows_secrets: entry.shows_secrets,
        });
        Ok(())
    }

    /// Any other object: deleted if it is ours, and done when it is gone.
    #[expect(clippy::unnecessary_wraps, reason = "it is a `What`, which may fail")]
    fn delete(
        &mut self,
        _: &ChildPlan,
        _: &mut Renderer<'_, '_>,
        key: ChildKey,
    ) -> Result<(), RenderError> {
        let observed = self.place.observed;
        let uid = &observed.cr.id.uid;
        let Some(record) = observed
            .child(&key)
            .filter(|record| record.is_ours(uid, self.manager))
        else {
            return Ok(());
        };
        if record.deleting {
            self.deletion.awaited.push(key);
        } else {
            self.deletion.delete.push(Deletion {
                key,
                uid: record.id.uid.clone(),
            });
        }
        Ok(())
    }
}

/// The action for an entry's object.
type EntryAction<E> =
    fn(&mut E, &ChildPlan, &mut Renderer<'_, '_>, ChildKey) -> Result<(), RenderError>;
