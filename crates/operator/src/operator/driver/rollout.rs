//! Moves from the wanted plan to the plan in force: binds it beside the running one, and swaps once everything it needs can
//! be read.

use std::sync::{Arc, atomic::Ordering};

use orkestra_cluster::requests::ClusterError;
use orkestra_language::reasons::KatalogReason;
use orkestra_plan::{OperatorPlan, ResourceType, Revised};
use tokio::time::Instant;

use super::{Driver, LOOK_AGAIN, Life};
use crate::{
    operator::{bind, kinds, source_states::SourceStates, work},
    queue::Lane,
    shared::bound_plan::BoundPlan,
    sources::{cross, observed},
    status::{OperatorProblem, Role},
};

/// A plan that is bound but not in force yet: not everything it needs could be read.
pub(crate) struct NextPlan {
    pub(crate) bound: Arc<BoundPlan>,
    pub(crate) of: Revised,
    /// The plan declares a kind that is not served, and an earlier plan runs: it waits for that kind.
    pub(crate) waits: bool,
}

impl Driver {
    /// Starts the watches of the wanted plan; it takes over once everything can be read.
    pub(crate) async fn bind(&mut self, life: &mut Life) {
        life.look_again_at = None;
        let wanted = self.wanted();
        life.latest = Some(wanted.plan.clone());
        // Large and rarely run: boxed, so that it takes memory only while it runs.
        let obstacle = match Box::pin(self.prepare(life, wanted)).await {
            Ok(()) => None,
            Err(problem) => {
                tracing::warn!(operator = %self.shared.plan().name, reason = %problem.reason, error = problem.message, "cannot bind the plan");
                life.next = None;
                Some(problem)
            }
        };
        let pending = life.next.as_ref().map(|next| next.bound.clone());
        self.shared.set_pending(pending, obstacle);
    }

    /// Sets `life.next` to `wanted` with its watches, unless exactly that is in force.
    ///
    /// # Errors
    /// Why nothing can be watched for it. If no event will show that this changed, another attempt is scheduled.
    async fn prepare(&mut self, life: &mut Life, wanted: Revised) -> Result<(), OperatorProblem> {
        let plan = wanted.plan.clone();
        let version = &plan.resource.version;
        let crd = self.definition(life, &plan);
        let crd_status = crd.status_of(version);
        let is_served = crd.serves(version) || crd.deleting;
        let Some(crd_status) = crd_status.filter(|_| is_served) else {
            return Err(not_served(&plan.resource));
        };
        let current = self.shared.bound.load_full();
        // A plan that only processes deletions is not in force.
        let current = current.filter(|_| !life.ends_only);
        let before = current.as_deref().or(life.next());
        let declared = self.shared.context.accepted.of(&plan);
        let needed = kinds::needed(&plan, &declared, before);
        let observed = before.map(|before| &before.sources.observed);
        let observed = observed::find(&self.shared.context, &plan, observed).await;
        let found = kinds::find(&self.shared, &plan, before, needed).await;
        let found = found.map_err(|error| {
            life.look_again_at = Some(Instant::now() + LOOK_AGAIN);
            not_found(&error)
        })?;
        if !found.absent.is_empty() || observed.contains(&None) {
            life.look_again_at = Some(Instant::now() + LOOK_AGAIN);
        }
        let unchanged = current.as_ref().is_some_and(|bound| {
            is_same_work(bound, &plan)
                && bound.crd_status == crd_status
                && bound.absent == found.absent
                && bound
                    .sources
                    .targets
                    .are(&cross::resolve(&self.shared.context, &plan))
                && bound.sources.observed.are(&observed)
                && bound.serves_exactly(&found.served)
        });
        if unchanged {
            life.next = None;
            self.put_in_force(wanted);
            self.adopt_figures(life);
            return Ok(());
        }
        let of = (&*crd, plan.clone(), crd_status);
        let bound = bind::bind(&self.shared, of, found, observed);
        let is_other = |current: &BoundPlan| !is_same_work(current, &plan);
        life.next = Some(NextPlan {
            waits: current.as_deref().is_some_and(is_other) && bound.lacks_kinds(),
            bound: Arc::new(bound),
            of: wanted,
        });
        Ok(())
    }

    /// True if workers should run.
    pub(crate) fn works(&self) -> bool {
        *self.duty.borrow() && self.shared.role == Role::Reconciles
    }

    /// Processes deletions only: a permission is missing, so nothing can be reconciled after a restart. Custom resources that
    /// are being deleted report this, and can be released.
    pub(crate) fn end_only(&mut self, life: &mut Life) {
        let Some(next) = life.next.as_ref().map(|next| next.bound.clone()) else {
            return;
        };
        life.ends_only = true;
        self.shared.ends_only.store(true, Ordering::Relaxed);
        self.shared.bound.store(Some(next.clone()));
        for record in next.crs.store().snapshot() {
            let key = &record.id.key;
            self.shared.instances.add(&record.id.uid, key);
            if record.deleting {
                self.shared.queue.let_through(key, true);
                self.shared.enqueue(key.clone(), Lane::Changed);
            }
        }
        life.workers
            .get_or_insert_with(|| work::start(&self.shared, &next.plan));
    }

    /// Puts the bound plan in force, now that everything it needs can be read.
    pub(crate) fn swap(&mut self, life: &mut Life) {
        let Some(NextPlan {
            bound: next, of, ..
        }) = life.next.take()
        else {
            return;
        };
        let ended_only = std::mem::take(&mut life.ends_only);
        self.shared.ends_only.store(false, Ordering::Relaxed);
        self.shared.set_pending(None, None);
        let before = self.shared.bound.swap(Some(next.clone()));
        // Only now: a reader that sees a plan running finds it bound.
        self.put_in_force(of);
        self.shared.uniques.rebuild(&next);
        // Inventories may name kinds that are known only from the custom resources.
        self.shared.rebind.notify_one();
        for record in next.crs.store().snapshot() {
            self.shared.instances.add(&record.id.uid, &record.id.key);
            let queue = &self.shared.queue;
            queue.let_through(&record.id.key, record.deleting);
        }
        let same_plan = before
            .as_ref()
            .is_some_and(|before| is_same_work(before, &next.plan));
        if !same_plan {
            self.shared.instances.forget_readiness();
        }
        let same_work = same_plan
            && !ended_only
            && before.as_ref().is_some_and(|before| {
                before.crd_status == next.crd_status
                    && before.absent == next.absent
                    && before.sources.targets.same(&next.sources.targets)
                    && before.sources.observed.same(&next.sources.observed)
            });
        life.source_states = SourceStates::of(&next);
        if !same_work || before.is_some_and(|before| before.kinds.len() != next.kinds.len()) {
            for key in next
                .cr_keys()
                .into_iter()
                .chain(next.all_formerly_managed())
            {
                self.shared.enqueue(key, Lane::Changed);
            }
        }
        self.apply_duty(life);
    }

    /// Makes passes use that plan from now on.
    pub(crate) fn put_in_force(&self, plan: Revised) {
        let sender = &self.shared.plans;
        sender.send_if_modified(|plans| {
            let before = plans.clone();
            plans.run(plan);
            *plans != before
        });
    }
}

/// True if a pass under `plan` does the same as one under the bound plan.
pub(crate) fn is_same_work(bound: &BoundPlan, plan: &OperatorPlan) -> bool {
    bound.plan.hash == plan.hash && bound.plan.reads == plan.reads
}

/// The problem of a plan whose version the CRD does not serve.
fn not_served(resource: &ResourceType) -> OperatorProblem {
    let (kind, version) = (resource.group_kind(), &resource.version);
    OperatorProblem {
        reason: KatalogReason::CrdMissing,
        message: format!("the CRD of {kind} does not serve version {version}"),
    }
}

/// The problem if the kinds of its children could not be looked up.
fn not_found(error: &ClusterError) -> OperatorProblem {
    let reason = match error {
        ClusterError::Forbidden { .. } => KatalogReason::Forbidden,
        _ => KatalogReason::Unavailable,
    };
    OperatorProblem {
        reason,
        message: format!("cannot look up the kinds of its children: {error}"),
    }
}
