//! The worker's part of a pass: counts health, catches a panic, queues what follows.

use std::{
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use futures::{FutureExt, poll};
use orkestra_engine::reconcile::record::CrRecord;
use orkestra_language::reasons::Reason;
use orkestra_plan::{ObjectKey, OperatorPlan};
use tokio::time::Instant;

use crate::{
    deletion::{self, orphans},
    metrics::{PassOutcome, Trigger},
    pass::{
        NextPass, Pass, Passed, events::ignore_strangers, observe_all, permit, reconcile, unread,
    },
    queue::{Cause, Lane, QueueWorkers, TakenKey, WorkQueue},
    shared::Shared,
};

/// The delay for a key whose pass ended with the lease: workers stop within that time.
const LOST: Duration = Duration::from_secs(1);

/// The delay before a pass is retried while the API server's state is compared with the records.
const UNTIL_COMPARED: Duration = Duration::from_millis(100);

/// Starts the workers of an operator, as many as `plan` declares and the autoscaler permits.
pub(crate) fn start(shared: &Arc<Shared>, plan: &OperatorPlan) -> QueueWorkers<ObjectKey> {
    let (name, workers) = (plan.full_name(), shared.capacity.pace(plan).workers);
    let (shared, weak) = (shared.clone(), Arc::downgrade(shared));
    let counted = move |count| {
        if let Some(shared) = weak.upgrade() {
            shared.capacity.set_workers(count);
            shared.changed.notify_one();
        }
    };
    QueueWorkers::start(
        &name,
        shared.queue.clone(),
        workers,
        counted,
        move |taken| {
            let shared = shared.clone();
            Box::pin(async move { one(&shared, taken).await })
        },
    )
}

/// Runs the pass of a key, counts it and queues what follows.
async fn one(shared: &Shared, taken: TakenKey<ObjectKey>) {
    let key = taken.key.clone();
    shared.metrics.waited(taken.waited);
    let started = Instant::now();
    let active = shared.metrics.enter_pass();
    // Before the pass exists: at a start thousands wait for a core, and each would take some kilobytes.
    let permit = permit(&shared.context.passes).await;
    let Some(bound) = shared.bound.load_full() else {
        return;
    };
    let pass = Pass::begin(shared, &bound, &key, permit);
    let began = bound.cr(&key).map(|cr| cr.generation);
    let passed = shared
        .context
        .leadership
        // A pass is large; boxed to keep the surrounding future small.
        .while_leading(Box::pin(guarded(&pass)))
        .await;
    let wrote = pass.has_written();
    if let Some(passed) = &passed {
        let is_over = passed.next != NextPass::Pending;
        if is_over && !passed.is_lost(shared.context.cluster.reach()) {
            pass.stand(began, passed.error.as_ref());
        }
        pass.end();
    }
    drop(active);
    // A write that is refused after the lease has expired does not count as a failure.
    let leads = || shared.context.leadership.leads();
    let Some(passed) = passed.filter(|passed| passed.error.is_none() || leads()) else {
        shared.queue.add_after(key, LOST);
        return;
    };
    let outcome = if passed.error.is_some() {
        PassOutcome::Error
    } else {
        PassOutcome::Success
    };
    if passed.next != NextPass::Pending {
        let took = started.elapsed();
        let trigger = trigger(taken.cause);
        (shared.metrics).pass_ended(outcome, (trigger, wrote), took);
        shared.passes.ended(took, outcome == PassOutcome::Error);
    }
    if passed.is_lost(shared.context.cluster.reach()) {
        // Queued again without counting as an attempt; it runs once the API server is reachable.
        shared.queue.add(key, Lane::Changed);
        taken.done();
        return;
    }
    if passed.next != NextPass::Pending {
        let is_known = bound.cr(&key).is_some();
        let is_retried = passed.next == NextPass::Retry;
        shared.passed(&bound.plan, &key, (is_known, is_retried), passed.error);
    }
    follow(&shared.queue, key, passed.next);
    taken.done();
    shared.changed.notify_one();
}

/// Queues what follows a pass.
fn follow(queue: &WorkQueue<ObjectKey>, key: ObjectKey, next: NextPass) {
    match next {
        NextPass::Settled => queue.forget(&key),
        // This was not a full pass: the failure count is kept.
        NextPass::Pending => {}
        NextPass::Again => {
            queue.forget(&key);
            queue.add(key, Lane::Changed);
        }
        NextPass::Retry => queue.retry(key),
        NextPass::After(delay) => {
            queue.forget(&key);
            queue.add_after(key, delay);
        }
    }
}

/// Returns the metrics label of a cause.
fn trigger(cause: Cause) -> Trigger {
    match cause {
        Cause::Changed => Trigger::Changed,
        Cause::Timer => Trigger::Timer,
        Cause::Retry => Trigger::Retry,
        Cause::Resync => Trigger::Resync,
    }
}

/// Runs the pass. A panic is a failure: the next pass sees and fixes what it left unfinished.
async fn guarded(pass: &Pass<'_>) -> Passed {
    let mut running = pin!(AssertUnwindSafe(run(pass)).catch_unwind());
    let first = poll!(running.as_mut());
    // What follows waits for others, and must not keep a core from them.
    pass.release_permit();
    let result = match first {
        Poll::Ready(result) => result,
        Poll::Pending => running.await,
    };
    result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        pass.shared.metrics.panicked();
        tracing::error!(operator = %pass.bound.plan.name, object = %pass.key, error = %text, "pass panicked");
        Passed::failed(Reason::Panicked, format!("Panicked: {text}"))
    })
}

/// Runs the pass that the state of the custom resource asks for.
async fn run(pass: &Pass<'_>) -> Passed {
    if pass.bound.is_open() {
        return Passed {
            next: NextPass::After(UNTIL_COMPARED),
            error: None,
        };
    }
    let cr = match find(pass).await {
        Ok(cr) => cr,
        Err(over) => return over,
    };
    if cr.deleting {
        return deletion::finish(pass, &cr).await;
    }
    if let Some(fault) = &cr.unread {
        return unread::report(pass, &cr, fault).await;
    }
    let (mut observed, strangers) = observe_all(pass.bound, &cr);
    ignore_strangers(pass, &cr, &strangers);
    observed.orphans = orphans::of(pass, &cr).await;
    reconcile(pass, observed).await
}

/// Returns the custom resource of the pass, if it is managed.
///
/// # Errors
/// The result of the pass without one.
async fn find(pass: &Pass<'_>) -> Result<Arc<CrRecord>, Passed> {
    let Pass {
        shared, bound, key, ..
    } = pass;
    let ends_only =
        shared.ends_only.load(Ordering::Relaxed) || shared.suspended.load(Ordering::Acquire);
    let cr = bound.cr(key);
    if ends_only && !cr.as_ref().is_some_and(|cr| cr.deleting) {
        // It is queued again once everything can be read, or the Katalog is resumed.
        return Err(Passed::pending());
    }
    if let Some(cr) = cr {
        return Ok(cr);
    }
    Err(match bound.formerly_managed(key) {
        Some(cr) => deletion::release(pass, &cr).await,
        None => orphans::clear(pass).await,
    })
}
