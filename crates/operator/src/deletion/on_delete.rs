//! `onDelete`: creates Jobs and waits for them, and deletes listed children, step by step. The core decides what comes next.

use jiff::Timestamp;
use orkestra_cluster::requests::{ClusterError, Propagation};
use orkestra_engine::reconcile::{
    deletion::{DeletionStep, OnDeleteJob, finish},
    labels::current_labels,
    reason::Reason,
    record::{ChildRecord, Observed},
    step::Failure,
    template_data::TemplateData,
    verdict::{Action, Done, Executed, verdict},
    waiting_for,
};
use orkestra_plan::ChildKey;
use orkestra_template::Entropy;

use crate::{
    pass::{
        NextPass, Pass, Passed,
        answers::answer,
        events::{log_write, report_events},
        execute::delete_child,
        failure::{failure, withheld},
        metadata::{WantedMetadata, write_metadata},
        next, observe, report, soonest,
    },
    shared::passes::Failed,
};

/// Goes one step further; none if nothing is left to do or to wait for.
pub(crate) async fn end(pass: &Pass<'_>, observed: &Observed) -> Option<Passed> {
    let now = pass.shared.context.clock.now();
    let observed = &mut observed.clone();
    let mut deletion = decide(pass, observed, now).await;
    // Each hook makes one call, and each token is read once.
    while !deletion.needs.is_empty() {
        let heard = answer(pass, (observed, now), deletion.needs).await;
        if heard.pending {
            // Work in progress queues the custom resource again.
            return Some(Passed::settled());
        }
        observed.answers.extend(heard.answers);
        deletion = decide(pass, observed, now).await;
    }
    pass.shared.sources.calls.end(pass.key);
    if deletion.is_done() {
        return None;
    }
    let mut executed = Executed {
        deletion: Some(waiting_for::awaits(&deletion)),
        wake: deletion.wake,
        failures: deletion.failures.clone(),
        ..Executed::default()
    };
    let skipped = make(pass, observed, &deletion, &mut executed).await;
    let owner = &observed.cr.id.key;
    for deletion in &deletion.delete {
        let result = delete_child(pass, deletion, Propagation::Foreground).await;
        if result.is_ok() {
            log_write(pass, owner, &deletion.key, Action::Deleted);
        }
        note(&mut executed, &deletion.key, Action::Deleted, result);
    }
    let after = observe(pass.bound, &observed.cr);
    let passed = wait(pass, &after, executed).await;
    // A skipped Job counts as ended.
    let again = if skipped {
        NextPass::Again
    } else {
        NextPass::Settled
    };
    Some(Passed {
        next: soonest(passed.next, again),
        ..passed
    })
}

/// Reports what a custom resource that is being deleted waits for.
pub(crate) async fn wait(pass: &Pass<'_>, observed: &Observed, mut executed: Executed) -> Passed {
    let (now, sources) = (pass.shared.context.clock.now(), TemplateData::default());
    let written = report(pass, (observed, &sources), &mut executed, now).await;
    let verdict = verdict(observed, &executed);
    report_events(pass, observed, &executed, &verdict);
    pass.memory().ready = false;
    let due = executed
        .wake
        .map(|moment| pass.shared.context.clock.until(moment));
    Passed {
        next: soonest(next(&executed, due), written),
        error: Failed::of(&executed, verdict),
    }
}

async fn decide(pass: &Pass<'_>, observed: &Observed, now: Timestamp) -> DeletionStep {
    let _permit = pass.permit().await;
    let entropy = Entropy::seeded(pass.shared.context.entropy.seed());
    finish(&pass.bound.plan, pass.bound, observed, now, &entropy)
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
    pass: &Pass<'_>,
    observed: &Observed,
    deletion: &DeletionStep,
    executed: &mut Executed,
) -> bool {
    let mut inventory = deletion.inventory.clone();
    let mut skipped = false;
    for job in &deletion.make {
        match create(pass, observed, job).await {
            Ok(Made::Now) => {
                log_write(pass, &observed.cr.id.key, &job.key, Action::Created);
                note(executed, &job.key, Action::Created, Ok(()));
            }
            Ok(Made::Never(message)) => {
                tracing::warn!(operator = %pass.bound.plan.name, object = %observed.cr.id.key, job = %job.key, error = %message, "cannot create the onDelete Job");
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
    let wanted = WantedMetadata {
        inventory,
        labels: current_labels(&pass.bound.plan, &observed.cr),
    };
    match write_metadata(pass, &observed.cr, &wanted).await {
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

async fn create(pass: &Pass<'_>, observed: &Observed, job: &OnDeleteJob) -> Result<Made, Failure> {
    let kind = pass.bound.kind_of(&job.key)?;
    let key = &job.key.object;
    match pass
        .create(kind.served(), key, &job.object, &pass.bound.manager)
        .await
    {
        Ok(answer) => {
            kind.store().answer(&answer);
            Ok(Made::Now)
        }
        Err(ClusterError::Terminating(message)) => Ok(Made::Never(message)),
        Err(ClusterError::AlreadyExists(_)) => {
            let live = pass.shared.requests.get(kind.served(), key).await;
            let live = live.map_err(|error| failure(&job.key, &error))?;
            let ours = ChildRecord::read(&job.key.kind, &live, &[]).is_ok_and(|record| {
                record.is_uncollected(&observed.cr.id.uid, &pass.bound.manager)
            });
            if ours {
                return Ok(Made::Now);
            }
            Err(Failure {
                reason: Reason::NameTaken,
                at: job.key.to_string(),
                message: "an object of this name exists and is not the onDelete Job of this custom resource".to_owned(),
            })
        }
        Err(error) => Err(withheld(failure(&job.key, &error), job.shows_secrets)),
    }
}
