//! One pass over one custom resource.
//!
//! ```text
//!  observe ──► reconcile: decide ── step of the core ◄──► answers     what it reads beside children
//!                │
//!                ├─ normalize, cleanup     before children are written
//!                ├─ metadata               finalizers, labels and inventory of the custom resource
//!                ├─ execute                children: decide what to send, generate, replace
//!                ├─ report, events         status; Events and logs
//!                └─ outcome                what follows
//! ```
//!
//! [`Pass`] is what it works on and what it remembers; its requests are in `requests`, and note that it wrote. `unread` is a
//! custom resource, or a child, that cannot be decoded.

pub(super) mod answers;
mod cleanup;
pub(super) mod events;
pub(super) mod execute;
pub(super) mod failure;
pub(super) mod metadata;
mod normalize;
mod outcome;
mod reconcile;
mod report;
mod requests;
pub(super) mod unread;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use orkestra_core::{
    plan::{ChildKey, ObjectKey},
    reconcile::{
        record::{CrRecord, Observed},
        sources::Answers,
        status::reported,
    },
};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) use self::{
    outcome::{NextPass, Passed, next, refused, soonest},
    reconcile::reconcile,
    report::report,
};
use super::shared::{Shared, bound_plan::BoundPlan, memory::Memory};

/// One pass over one custom resource.
pub(super) struct Pass<'a> {
    pub(super) shared: &'a Shared,
    pub(super) bound: &'a BoundPlan,
    pub(super) key: &'a ObjectKey,
    /// What earlier passes remembered, and what this one does. Never locked across an await.
    memory: Mutex<Memory>,
    /// Whether it has written anything.
    wrote: AtomicBool,
    /// Permits its first pure part.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl<'a> Pass<'a> {
    /// Begins a pass over the custom resource of that key, with the permit for its first pure part.
    pub(super) fn begin(
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
            permit: permit.into(),
        }
    }

    /// Returns the permit for a pure part: the one that the pass began with, or the next.
    pub(super) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let first = self.permit.lock().take();
        match first {
            Some(permit) => Some(permit),
            None => permit(&self.shared.context.passes).await,
        }
    }

    /// Lets another pass have the permit that this one began with.
    pub(super) fn release_permit(&self) {
        drop(self.permit.lock().take());
    }

    /// Keeps what it remembers for the next pass, if the custom resource still exists.
    pub(super) fn end(self) {
        if self.bound.cr(self.key).is_some() {
            let memory = self.memory.into_inner();
            self.shared.instances.put_memory(self.key, memory);
        }
    }

    /// Returns what it remembers about the custom resource.
    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock()
    }

    /// True if it has written anything.
    pub(super) fn has_written(&self) -> bool {
        self.wrote.load(Ordering::Relaxed)
    }
}

/// Waits for the permit for a pure part.
pub(super) async fn permit(passes: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    // The semaphore is never closed.
    passes.clone().acquire_owned().await.ok()
}

/// Collects everything that a pass over `cr` reads.
pub(super) fn observe(bound: &BoundPlan, cr: &Arc<CrRecord>) -> Observed {
    observe_all(bound, cr).0
}

/// The same, with the objects whose marks name the custom resource and that cannot be its children.
pub(super) fn observe_all(bound: &BoundPlan, cr: &Arc<CrRecord>) -> (Observed, Vec<ChildKey>) {
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
