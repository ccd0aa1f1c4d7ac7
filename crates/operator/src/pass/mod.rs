//! One pass over one custom resource.
//!
//! ```text
//!  observe ──► reconcile: decide ── step of the core ◄──► answers     what it reads beside children
//!                │
//!                ├─ normalize, cleanup     before children are written
//!                ├─ metadata               finalizers, labels and inventory of the custom resource
//!                ├─ execute                children: decide what to send, generate, replace
//!                ├─ awaited                why children are not ready
//!                ├─ suspension             who suspended it
//!                ├─ report, events         status; Events and logs
//!                └─ outcome                what follows
//! ```
//!
//! [`Pass`] is what it works on and what it remembers; its requests are in `requests`, and note that it wrote. `unread` is a
//! custom resource, or a child, that cannot be decoded.

pub(crate) mod answers;
mod awaited;
mod cleanup;
mod consequence;
pub(crate) mod events;
pub(crate) mod execute;
pub(crate) mod failure;
pub(crate) mod metadata;
mod normalize;
mod outcome;
mod reconcile;
mod report;
mod requests;
mod suspension;
pub(crate) mod unread;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use orkestra_engine::reconcile::{
    record::{CrRecord, Observed},
    sources::Answers,
    standing::{Generation, PassEnd, Standing},
    status::reported,
    verdict::Verdict,
};
use orkestra_plan::{ChildKey, ObjectKey};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(crate) use self::{
    outcome::{NextPass, Passed, next, refused, soonest},
    reconcile::reconcile,
    report::report,
};
use super::shared::{Shared, bound_plan::BoundPlan, memory::Memory, passes::Failed};

/// One pass over one custom resource.
pub(crate) struct Pass<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) bound: &'a BoundPlan,
    pub(crate) key: &'a ObjectKey,
    /// What earlier passes remembered, and what this one does. Never locked across an await.
    memory: Mutex<Memory>,
    /// Whether it has written anything.
    wrote: AtomicBool,
    /// Why the custom resource is not ready, as this pass reports it.
    lacks: Mutex<Option<String>>,
    /// Permits its first pure part.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl<'a> Pass<'a> {
    /// Begins a pass over the custom resource of that key, with the permit for its first pure part.
    pub(crate) fn begin(
        shared: &'a Shared,
        bound: &'a BoundPlan,
        key: &'a ObjectKey,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            shared,
            bound,
            key,
            memory: shared.instances.take_memory(key).into(),
            wrote: AtomicBool::new(false),
            lacks: Mutex::default(),
            permit: permit.into(),
        }
    }

    /// Returns the permit for a pure part: the one that the pass began with, or the next.
    pub(crate) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let first = self.permit.lock().take();
        match first {
            Some(permit) => Some(permit),
            None => permit(&self.shared.context.passes).await,
        }
    }

    /// Lets another pass have the permit that this one began with.
    pub(crate) fn release_permit(&self) {
        drop(self.permit.lock().take());
    }

    /// Keeps what it remembers for the next pass, if the custom resource still exists.
    pub(crate) fn end(self) {
        if self.bound.cr(self.key).is_some() {
            let memory = self.memory.into_inner();
            let is_current = || {
                let bound = self.shared.bound.load();
                bound
                    .as_ref()
                    .is_some_and(|now| now.plan.hash == self.bound.plan.hash)
            };
            let instances = &self.shared.instances;
            instances.put_memory(self.key, memory, is_current);
        }
    }

    /// Returns what it remembers about the custom resource.
    pub(crate) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }

    /// Notes the verdict of the pass.
    pub(crate) fn conclude(&self, verdict: &Verdict) {
        let mut memory = self.memory();
        memory.ready = verdict.ready;
        memory.reason = Some(verdict.reason);
        *self.lacks.lock() = (!verdict.ready).then(|| verdict.message.clone());
    }

    /// Notes how the custom resource stands under the revision after this pass, which began at that generation.
    pub(crate) fn stand(&self, began: Generation, failed: Option<&Failed>) {
        let cr = self.bound.cr(self.key);
        let mut memory = self.memory();
        if let Some(failed) = failed {
            memory.ready = false;
            memory.reason = Some(failed.reason);
            *self.lacks.lock() = Some(failed.message.clone());
        }
        let Some(cr) = cr.filter(|cr| !cr.deleting) else {
            memory.standing = Standing::default();
            return;
        };
        let end = match (memory.held_back, memory.reason) {
            (Some(_), _) => PassEnd::Waiting,
            (None, Some(reason)) => PassEnd::of(reason),
            (None, None) => return,
        };
        let counts = |generation: &i64| self.bound.crd_status.has_status && *generation > 0;
        let generations = [began, Some(cr.generation)].map(|one| one.filter(counts));
        memory.standing = memory.standing.after(end, generations);
        let is_broken = memory.standing.broken().is_some();
        let why = self.lacks.lock().take().filter(|_| is_broken);
        self.shared.instances.note_failure(self.key, why);
    }

    /// True if it has written anything.
    pub(crate) fn has_written(&self) -> bool {
        self.wrote.load(Ordering::Relaxed)
    }
}

/// Waits for the permit for a pure part.
pub(crate) async fn permit(passes: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // The semaphore is never closed.
    passes.clone().acquire_owned().await.ok()
}

/// Collects everything that a pass over `cr` reads.
pub(crate) fn observe(bound: &BoundPlan, cr: &Arc<CrRecord>) -> Observed {
    observe_all(bound, cr).0
}

/// The same, with the objects whose marks name the custom resource and that cannot be its children.
pub(crate) fn observe_all(bound: &BoundPlan, cr: &Arc<CrRecord>) -> (Observed, Vec<ChildKey>) {
    let (children, strangers) = bound.claimed_by(&cr.id);
    let inventory = cr.inventory.checked(&bound.declared);
    let unseen = inventory
        .kinds
        .iter()
        .filter(|kind| !bound.sees(kind, cr.id.key.namespace.as_deref()))
        .cloned()
        .collect::<BTreeSet<_>>();
    let observed = Observed {
        cr: cr.clone(),
        inventory,
        children,
        orphans: Vec::new(),
        unseen,
        reported: reported(&bound.plan, &bound.crd_status, cr),
        answers: Answers::new(),
    };
    (observed, strangers)
}

#[cfg(test)]
mod tests;
