//! The workers' side of a pass: health is counted, a panic ends one cycle, what follows is queued.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures::FutureExt;
use orkestra_core::plan::ObjectKey;
use tokio::time::Instant;

use super::{
    bound::Bound,
    pass::{Next, Passed, pass},
    queue::{Cause, Lane, Taken, Workers},
    shared::Shared,
};
use crate::metrics::Outcome;

/// How long a key rests whose pass ended with the lease: workers stop within that.
const LOST: Duration = Duration::from_secs(1);

/// Starts `count` workers of an operator.
pub(super) fn start(shared: &Arc<Shared>, count: usize) -> Workers<ObjectKey> {
    let shared = shared.clone();
    Workers::start(shared.queue.clone(), count, move |taken| {
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
    let passed = shared
        .context
        .leadership
        .while_leading(guarded(shared, &bound, &taken));
    let passed = passed.await;
    drop(active);
    // A write that was refused since the lease has run out is nobody's failure.
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
        shared.metrics.pass_ended(outcome, took);
        shared.meter.ended(took, outcome == Outcome::Error);
        let is_known = bound.cr(&key).is_some();
        shared.passed(&key, is_known, passed.error);
    }
    match passed.next {
        Next::Settled => shared.queue.forget(&key),
        // It is no pass yet: how often it failed before is still known.
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

/// The pass. A panic is a failure of its own: whatever it left half done, the next pass sees and mends.
async fn guarded(shared: &Shared, bound: &Bound, taken: &Taken<ObjectKey>) -> Passed {
    let key = &taken.key;
    let mut memory = shared.take_memory(key);
    if taken.cause == Cause::Resync {
        memory.look_again();
    }
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
