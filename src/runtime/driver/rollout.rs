//! From the plan that is wanted to the plan in force: bind it beside the one that runs, and swap once everything that it needs can
//! be read.

use std::sync::{Arc, atomic::Ordering};

use orkestra_core::{
    plan::{OperatorPlan, ResourceType, Revised},
    reasons::KatalogReason,
};
use tokio::time::Instant;

use super::{
    super::{
        bind,
        bound::Bound,
        kinds,
        operator::{Problem, Role},
        queue::Lane,
        sources::{cross, moods::Moods, observed},
        wire::WireError,
        work,
    },
    Driver, LOOK_AGAIN, Life,
};

/// A plan that is bound and not in force yet: not everything that it needs could be read.
pub(super) struct Next {
    pub(super) bound: Arc<Bound>,
    pub(super) of: Revised,
    /// It declares a kind that is not served, and an earlier plan works: it waits for that kind.
    pub(super) waits: bool,
}

impl Driver {
    /// Starts what the wanted plan needs of the cluster; it takes over once everything can be read.
    pub(super) async fn bind(&mut self, life: &mut Life) {
        life.look_again_at = None;
        let wanted = self.wanted();
        life.latest = Some(wanted.plan.clone());
        let obstacle = match self.prepare(life, wanted).await {
            Ok(()) => None,
            Err(problem) => {
                tracing::warn!(operator = %self.shared.plan().name, reason = %problem.reason, error = problem.message, "plan cannot be bound");
                life.next = None;
                Some(problem)
            }
        };
        let pending = life.next.as_ref().map(|next| next.bound.clone());
        self.shared.set_pending(pending, obstacle);
    }

    /// Has `life.next` be `wanted` with its watches, unless exactly that is in force.
    ///
    /// # Errors
    /// Why nothing can be watched for it; another look is scheduled where no event tells that it can.
    async fn prepare(&mut self, life: &mut Life, wanted: Revised) -> Result<(), Problem> {
        let plan = wanted.plan.clone();
        let version = &plan.resource.version;
        let crd = self.definition(life, &plan);
        let facts = crd.facts(version);
        let is_served = crd.serves(version) || crd.deleting;
        let Some(facts) = facts.filter(|_| is_served) else {
            return Err(not_served(&plan.resource));
        };
        let current = self.shared.bound.load_full();
        // What works on deletions alone is not in force.
        let current = current.filter(|_| !life.ends_only);
        let before = current.as_deref().or(life.next());
        let declared = self.shared.context.accepted.of(&plan);
        let needed = kinds::needed(&plan, &declared, before);
        let observed = before.map(|before| &before.observed);
        // Large and rare: in memory of its own, while it lasts.
        let observed = Box::pin(observed::find(&self.shared, &plan, observed)).await;
        let found = Box::pin(kinds::find(&self.shared, &plan, before, needed)).await;
        let found = found.map_err(|error| {
            life.look_again_at = Some(Instant::now() + LOOK_AGAIN);
            not_found(&error)
        })?;
        if !found.absent.is_empty() || observed.contains(&None) {
            life.look_again_at = Some(Instant::now() + LOOK_AGAIN);
        }
        let unchanged = current.as_ref().is_some_and(|bound| {
            is_same_work(bound, &plan)
                && bound.facts == facts
                && bound.absent == found.absent
                && bound
                    .targets
                    .are(&cross::resolve(&self.shared.context, &plan))
                && bound.observed.are(&observed)
                && bound.serves_exactly(&found.served)
        });
        if unchanged {
            life.next = None;
            self.put_in_force(wanted);
            self.adopt_figures(life);
            return Ok(());
        }
        let of = (&*crd, plan.clone(), facts);
        let bound = bind::bind(&self.shared, of, found, observed);
        let is_other = |current: &Bound| !is_same_work(current, &plan);
        life.next = Some(Next {
            waits: current.as_deref().is_some_and(is_other) && bound.lacks_kinds(),
            bound: Arc::new(bound),
            of: wanted,
        });
        Ok(())
    }

    /// Whether workers are to run.
    pub(super) fn works(&self) -> bool {
        *self.duty.borrow() && self.shared.role == Role::Reconciles
    }

    /// A permission is missing, so that nothing can be reconciled after a restart: custom resources that are being deleted
    /// say so, and can be let go.
    pub(super) fn end_only(&mut self, life: &mut Life) {
        let Some(next) = life.next.as_ref().map(|next| next.bound.clone()) else {
            return;
        };
        life.ends_only = true;
        self.shared.ends_only.store(true, Ordering::Relaxed);
        self.shared.bound.store(Some(next.clone()));
        for record in next.crs.store().snapshot() {
            let key = &record.id.key;
            self.shared.learn(&record.id.uid, key);
            if record.deleting {
                self.shared.queue.let_through(key, true);
                self.shared.enqueue(key.clone(), Lane::Changed);
            }
        }
        life.workers
            .get_or_insert_with(|| work::start(&self.shared, &next.plan));
    }

    /// Everything that the bound plan needs can be read: it is in force from now on.
    pub(super) fn swap(&mut self, life: &mut Life) {
        let Some(Next {
            bound: next, of, ..
        }) = life.next.take()
        else {
            return;
        };
        let ended_only = std::mem::take(&mut life.ends_only);
        self.shared.ends_only.store(false, Ordering::Relaxed);
        self.shared.set_pending(None, None);
        let before = self.shared.bound.swap(Some(next.clone()));
        // Only now: who reads that a plan runs finds it bound.
        self.put_in_force(of);
        self.shared.uniques.rebuild(&next);
        // Inventories may name kinds that only the custom resources could tell of.
        self.shared.rebind.notify_one();
        for record in next.crs.store().snapshot() {
            self.shared.learn(&record.id.uid, &record.id.key);
            let queue = &self.shared.queue;
            queue.let_through(&record.id.key, record.deleting);
        }
        let same_plan = before
            .as_ref()
            .is_some_and(|before| is_same_work(before, &next.plan));
        if !same_plan {
            self.shared.forget_readiness();
        }
        let same_work = same_plan
            && !ended_only
            && before.as_ref().is_some_and(|before| {
                before.facts == next.facts
                    && before.absent == next.absent
                    && before.targets.same(&next.targets)
                    && before.observed.same(&next.observed)
            });
        life.moods = Moods::of(&next);
        if !same_work || before.is_some_and(|before| before.kinds.len() != next.kinds.len()) {
            for key in next.cr_keys().into_iter().chain(next.strays()) {
                self.shared.enqueue(key, Lane::Changed);
            }
        }
        self.employ(life);
    }

    /// From now on passes go by that plan.
    pub(super) fn put_in_force(&self, plan: Revised) {
        let sender = &self.shared.plans;
        sender.send_if_modified(|plans| {
            let before = plans.clone();
            plans.run(plan);
            *plans != before
        });
    }
}

/// Whether a pass under `plan` does what one under the bound plan does.
pub(super) fn is_same_work(bound: &Bound, plan: &OperatorPlan) -> bool {
    bound.plan.hash == plan.hash && bound.plan.reads == plan.reads
}

/// Why a plan cannot be bound whose version the CRD does not serve.
fn not_served(resource: &ResourceType) -> Problem {
    let (kind, version) = (resource.group_kind(), &resource.version);
    Problem {
        reason: KatalogReason::CrdMissing,
        message: format!("the CRD of {kind} does not serve version {version}"),
    }
}

/// Why the kinds of its children could not be looked up.
fn not_found(error: &WireError) -> Problem {
    let reason = match error {
        WireError::Forbidden { .. } => KatalogReason::Forbidden,
        _ => KatalogReason::Unavailable,
    };
    Problem {
        reason,
        message: format!("cannot look up the kinds of its children: {error}"),
    }
}
