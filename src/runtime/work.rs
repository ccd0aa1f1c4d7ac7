//! The worker's part of a pass: counts health, catches a panic, queues what follows.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use futures::FutureExt;
use orkestra_core::plan::{ObjectKey, OperatorPlan};
use tokio::time::Instant;

use super::{
    bound::Bound,
    pass::{Next, Passed, pass},
    queue::{Cause, Lane, Taken, Workers},
    requests::watched,
    shared::Shared,
};
use crate::metrics::{Outcome, Trigger};

/// The delay for a key whose pass ended with the lease: workers stop within that time.
const LOST: Duration = Duration::from_secs(1);

/// Starts the workers of an operator, as many as `plan` declares and the autoscaler permits.
pub(super) fn start(shared: &Arc<Shared>, plan: &OperatorPlan) -> Workers<ObjectKey> {
    let (name, crew) = (plan.full_name(), shared.pace(plan).crew);
    let (shared, told) = (shared.clone(), Arc::downgrade(shared));
    let counted = move |count| {
        if let Some(shared) = told.upgrade() {
            shared.workers.store(count, Ordering::Relaxed);
            shared.changed.notify_one();
        }
    };
    Workers::start(&name, shared.queue.clone(), crew, counted, move |taken| {
        let shared = shared.clone();
        Box::pin(async move { one(&shared, taken).await })
    })
}

async fn one(shared: &Shared, taken: Taken<ObjectKey>) {
    let Some(bound) = shared.bound.load_full() else {
        return;
    };
    let key = taken.key.clone();
    shared.metrics.waited(taken.waited);
    let started = Instant::now();
    let active = shared.metrics.enter_pass();
    let pass = shared
        .context
        .leadership
        // A pass is large; boxed to keep the surrounding future small.
        .while_leading(Box::pin(guarded(shared, &bound, &taken)));
    let (passed, wrote) = watched(pass).await;
    drop(active);
    // A write that is refused after the lease has expired does not count as a failure.
    let leads = || shared.context.leadership.leads();
    let Some(passed) = passed.filter(|passed| passed.error.is_none() || leads()) else {
        shared.queue.add_after(key, LOST);
        return;
    };
    let outcome = if passed.error.is_some() {
        Outcome::Error
    } else {
        Outcome::Success
    };
    if passed.next != Next::Pending {
        let took = started.elapsed();
        let trigger = trigger(taken.cause);
        (shared.metrics).pass_ended(outcome, (trigger, wrote), took);
        shared.meter.ended(took, outcome == Outcome::Error);
    }
    if passed.is_lost(shared.context.wire.reach()) {
        // Queued again without counting as an attempt; it runs once the API server is reachable.
        shared.queue.add(key, Lane::Changed);
        taken.done();
        return;
    }
    if passed.next != Next::Pending {
        let is_known = bound.cr(&key).is_some();
        let is_retried = passed.next == Next::Retry;
        shared.passed(&bound.plan, &key, (is_known, is_retried), passed.error);
    }
    match passed.next {
        Next::Settled => shared.queue.forget(&key),
        // This was not a full pass: the failure count is kept.
        Next::Pending => {}
        Next::Again => {
            shared.queue.forget(&key);
            shared.queue.add(key, Lane::Changed);
        }
        Next::Retry => shared.queue.retry(key),
        Next::After(delay) => {
            shared.queue.forget(&key);
            shared.queue.add_after(key, delay);
        }
    }
    taken.done();
    shared.changed.notify_one();
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
async fn guarded(shared: &Shared, bound: &Bound, taken: &Taken<ObjectKey>) -> Passed {
    let key = &taken.key;
    let mut memory = shared.take_memory(key);
    let result = AssertUnwindSafe(pass(shared, bound, key, &mut memory))
        .catch_unwind()
        .await;
    if bound.cr(key).is_some() {
        shared.put_memory(key, memory);
    }
    result.unwrap_or_else(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        shared.metrics.panicked();
        tracing::error!(operator = %bound.plan.name, object = %key, error = %text, "pass panicked");
        Passed::failed(Next::Retry, format!("Panicked: {text}"))
    })
}
