//! `onDelete`: creates Jobs and waits for them, and deletes listed children, step by step. The core decides what comes next.

use jiff::Timestamp;
use orkestra_cluster::wire::{Propagation, WireError};
use orkestra_core::{
    plan::ChildKey,
    reconcile::{
        finish::{EndJob, Ending, finish},
        labels::worn_labels,
        leaving,
        reason::Reason,
        record::{ChildRecord, Observed},
        sources::Sources,
        step::Failure,
        verdict::{Action, Done, Executed, verdict},
    },
    template::Entropy,
};

use super::{
    bound::Bound,
    execute::{delete_child, failure},
    log::log_write,
    memory::Memory,
    metadata::{Wanted, write_metadata},
    pass::{Failed, Next, Passed, next, observe, report, soonest},
    shared::Shared,
    sources::answer,
    tell::tell,
};

/// Goes one step further; none if nothing is left to do or to wait for.
pub(super) async fn end(
    shared: &Shared,
    bound: &Bound,
    observed: &Observed,
    memory: &mut Memory,
) -> Option<Passed> {
    let now = shared.context.clock.now();
    let observed = &mut observed.clone();
    let mut ending = decide(shared, bound, observed, now).await;
    if !ending.needs.is_empty() {
        let reads = std::mem::take(&mut ending.needs);
        let heard = answer(shared, bound, (observed, now), reads).await;
        observed.answers.extend(heard.answers);
        ending = decide(shared, bound, observed, now).await;
    }
    if !ending.needs.is_empty() {
        // Work in progress queues the custom resource again.
        return Some(Passed::settled());
    }
    if ending.is_done() {
        return None;
    }
    let mut executed = Executed {
        ending: Some(leaving::awaits(&ending)),
        wake: ending.wake,
        failures: ending.failures.clone(),
        ..Executed::default()
    };
    let skipped = make(shared, bound, observed, &ending, &mut executed).await;
    let owner = &observed.cr.id.key;
    for deletion in &ending.delete {
        let result = delete_child(shared, bound, deletion, Propagation::Foreground).await;
        if result.is_ok() {
            log_write(shared, bound, owner, &deletion.key, Action::Deleted);
        }
        note(&mut executed, &deletion.key, Action::Deleted, result);
    }
    let after = observe(bound, &observed.cr);
    let passed = wait(shared, bound, &after, memory, executed).await;
    // A skipped Job counts as ended.
    let again = if skipped { Next::Again } else { Next::Settled };
    Some(Passed {
        next: soonest(passed.next, again),
        ..passed
    })
}

/// Reports what a custom resource that is being deleted waits for.
pub(super) async fn wait(
    shared: &Shared,
    bound: &Bound,
    observed: &Observed,
    memory: &mut Memory,
    mut executed: Executed,
) -> Passed {
    let (now, sources) = (shared.context.clock.now(), Sources::default());
    let written = report(shared, bound, (observed, &sources), &mut executed, now).await;
    let verdict = verdict(observed, &executed);
    tell(shared, bound, observed, memory, &executed, &verdict);
    memory.ready = false;
    let due = executed
        .wake
        .map(|moment| shared.context.clock.until(moment));
    Passed {
        next: soonest(next(&executed, due), written),
        error: Failed::of(&executed, verdict.message),
    }
}

async fn decide(shared: &Shared, bound: &Bound, observed: &Observed, now: Timestamp) -> Ending {
    let _permit = shared.context.passes.acquire().await;
    let entropy = Entropy::seeded(shared.context.entropy.seed());
    finish(&bound.plan, bound, observed, now, &entropy)
}

fn note(executed: &mut Executed, key: &ChildKey, action: Action, result: Result<(), Failure>) {
    match result {
        Ok(()) => executed.done.push(Done {
            key: key.clone(),
            action,
        }),
        Err(failure) => executed.failures.push(failure),
    }
}

/// Creates the Jobs and records that they were created. True if some can no longer be created, which counts as ended.
async fn make(
    shared: &Shared,
    bound: &Bound,
    observed: &Observed,
    ending: &Ending,
    executed: &mut Executed,
) -> bool {
    let mut inventory = ending.inventory.clone();
    let mut skipped = false;
    for job in &ending.make {
        match create(shared, bound, observed, job).await {
            Ok(Made::Now) => {
                log_write(
                    shared,
                    bound,
                    &observed.cr.id.key,
                    &job.key,
                    Action::Created,
                );
                note(executed, &job.key, Action::Created, Ok(()));
            }
            Ok(Made::Never(message)) => {
                tracing::warn!(operator = %bound.plan.name, object = %observed.cr.id.key, job = %job.key, error = %message, "cannot create the onDelete Job");
                skipped = true;
            }
            Err(failure) => {
                inventory.ended.remove(&job.key);
                executed.failures.push(failure);
            }
        }
    }
    if inventory == *observed.cr.inventory {
        return false;
    }
    let wanted = Wanted {
        inventory,
        labels: worn_labels(&bound.plan, &observed.cr),
    };
    match write_metadata(shared, bound, &observed.cr, &wanted).await {
        Ok(_) => skipped,
        Err(failure) => {
            executed.failures.push(failure);
            false
        }
    }
}

/// The outcome of a Job's creation.
enum Made {
    /// It exists.
    Now,
    /// Nothing can be created in its namespace any more, because the namespace is being deleted.
    Never(String),
}

async fn create(
    shared: &Shared,
    bound: &Bound,
    observed: &Observed,
    job: &EndJob,
) -> Result<Made, Failure> {
    let kind = bound.kind_of(&job.key)?;
    let key = &job.key.object;
    match shared
        .create(kind.served(), key, &job.object, &bound.manager)
        .await
    {
        Ok(answer) => {
            kind.store().answer(&answer);
            Ok(Made::Now)
        }
        Err(WireError::Terminating(message)) => Ok(Made::Never(message)),
        Err(WireError::AlreadyExists(_)) => {
            let live = shared.get(kind.served(), key).await;
            let live = live.map_err(|error| failure(&job.key, &error))?;
            let ours = ChildRecord::read(&job.key.kind, &live, &[])
                .is_ok_and(|record| record.is_uncollected(&observed.cr.id.uid, &bound.manager));
            if ours {
                return Ok(Made::Now);
            }
            Err(Failure {
                reason: Reason::NameTaken,
                at: job.key.to_string(),
                message: "an object of this name exists and is not the Job of this end".to_owned(),
            })
        }
        Err(error) => Err(failure(&job.key, &error)),
    }
}
