//! The pass over a custom resource that can be read and is not being deleted.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::Timestamp;
use orkestra_engine::reconcile::{
    emit::emitted,
    hold_reason::HoldReason,
    record::{CrRecord, Observed},
    sources::{Answer, ROUNDS, Read},
    status::gated,
    step::{Cycle, StepResult, step},
    template_data::{CleanupState, TemplateData},
    verdict::{Action, Executed, verdict},
};
use orkestra_ground::Clock;
use orkestra_plan::ChildKey;

use super::{
    NextPass, Pass, Passed, answers, awaited, cleanup,
    events::{emit, ignore, report_events, warn},
    execute::{WriteOutcome, Writes, execute},
    metadata::{WantedMetadata, remember_made, write_metadata},
    next, normalize, observe,
    report::{report, write_status},
    soonest, suspension,
};
use crate::{shared::passes::Failed, sources::related};

/// The delay before a pass whose time has already come.
pub(crate) const LEAST_WAIT: Duration = Duration::from_secs(1);

/// A pass whose children are written.
struct Written {
    /// The custom resource and its children, after the writes.
    after: Observed,
    sources: TemplateData,
    executed: Executed,
    /// When the pass is due again, by what was written and by the plan.
    revisits: [Option<Duration>; 2],
    /// Created objects after which the pods of an existing workload roll.
    rolls_after: BTreeSet<ChildKey>,
    /// Whether an earlier pass has reported on the custom resource.
    is_known: bool,
}

/// Runs the pass; `observed` is what it reads.
pub(crate) async fn reconcile(pass: &Pass<'_>, mut observed: Observed) -> Passed {
    let (shared, key) = (pass.shared, pass.key);
    let is_known = before(pass, &observed);
    let calls = &shared.sources.calls;
    let now = calls.begin(key, shared.context.clock.now());
    let Some(cycle) = decide(pass, &mut observed, now).await else {
        return Passed::pending();
    };
    calls.end(key);
    let read = observed.answers.keys();
    shared
        .sources
        .read(key, read.filter(|read| read.may_change()));
    pass.memory().held_back = cycle.held_back;
    if let Some(held) = cycle.held_back {
        return hold(pass, &observed, (held, &cycle), now).await;
    }
    let mut sources = cycle.sources;
    if sources.cleanup == Some(CleanupState::Due) {
        return cleanup::clean_up(pass, &observed.cr).await;
    }
    let normalization = sources.prepared.normalization.as_mut();
    if let Err(over) = normalize::store(pass, &mut observed, normalization).await {
        return over;
    }
    let wanted = WantedMetadata {
        inventory: cycle.inventory,
        labels: cycle.labels,
    };
    let writes = Writes {
        intents: cycle.intents,
        failures: cycle.failures,
        missing: cycle.missing,
        ahead: cycle.ahead,
    };
    let (cr, outcome) = match write(pass, &observed, writes, wanted).await {
        Ok(written) => written,
        Err(over) => return over,
    };
    let after = Observed {
        cr: with_snapshot(&cr, &observed.cr),
        ..observe(pass.bound, &cr)
    };
    let mut executed = outcome.executed;
    shared.sources.scalers.settle(key, &executed.autoscaled);
    executed.wake_at(cycle.wake);
    executed.doubt(cycle.doubts);
    let written = Written {
        after,
        sources,
        executed,
        revisits: [outcome.revisit, cycle.requeue],
        rolls_after: cycle.rolls_after,
        is_known,
    };
    conclude(pass, written, now).await
}

/// Reports what is ignored, and asks for watches of what is not seen. True if an earlier pass has reported on the custom
/// resource.
fn before(pass: &Pass<'_>, observed: &Observed) -> bool {
    ignore(pass, observed);
    if !observed.unseen.is_empty() {
        pass.shared.rebind.notify_one();
    }
    let faults = &pass.shared.context.faults;
    faults.run_before_pass(&pass.bound.plan.name, pass.key);
    let has_children = observed.inventory != <_>::default();
    observed.reported.unwrap_or(has_children)
}

/// Reports what was written: status, Events and logs. Returns what follows.
async fn conclude(pass: &Pass<'_>, written: Written, now: Timestamp) -> Passed {
    let Written {
        after,
        sources,
        mut executed,
        revisits: [revisit, requeue],
        rolls_after,
        is_known,
    } = written;
    let plan = &pass.bound.plan;
    let looked = awaited::explain(pass, &after, &mut executed).await;
    let reported = report(pass, (&after, &sources), &mut executed, now).await;
    if !plan.emits.is_empty() || !plan.hooks.is_empty() {
        let before = pass.memory().emitted.clone().unwrap_or_default();
        let events = emitted(plan, (&after, &sources), &mut executed, &before, now);
        emit(pass, &after.cr, events, is_known);
    }
    // The watch does not report our own writes.
    pass.shared.compare_anew(pass.key);
    let verdict = verdict(&after, &executed);
    report_events(pass, &after, &executed, &verdict);
    warn(pass, &after.cr, &sources.prepared.warnings);
    pass.conclude(&verdict);
    pass.memory().retain(|key| after.child(key).is_some());
    let clock = &pass.shared.context.clock;
    let woken = executed.wake.map(|moment| due(clock, now, moment));
    let requeue = requeue.filter(|_| executed.failures.is_empty());
    let revisit = [revisit, woken, requeue, looked];
    let revisit = revisit.into_iter().flatten().min();
    let mut next = soonest(next(&executed, revisit), reported);
    let mut created = (executed.done.iter()).filter(|done| done.action == Action::Created);
    let must_roll = created.any(|done| rolls_after.contains(&done.key));
    if must_roll || related::are_new(plan, &executed) {
        next = soonest(next, NextPass::Again);
    }
    Passed {
        next,
        error: Failed::of(&executed, verdict),
    }
}

/// Writes the metadata of the custom resource, then its children. Returns the custom resource as written, and the outcome.
///
/// # Errors
/// The result of the pass, if it is over.
async fn write(
    pass: &Pass<'_>,
    observed: &Observed,
    writes: Writes,
    wanted: WantedMetadata,
) -> Result<(Arc<CrRecord>, WriteOutcome), Passed> {
    let ahead = writes.ahead.clone();
    let cr = &observed.cr;
    match write_metadata(pass, cr, &wanted).await {
        Ok(None) => Err(Passed::settled()),
        Ok(Some(cr)) => {
            let owner = observed.mark(&pass.bound.plan);
            let mut outcome = execute(pass, &owner, writes).await;
            match remember_made(pass, cr.clone(), wanted, &ahead, &outcome.made).await {
                Ok(cr) => Ok((cr, outcome)),
                // A first report now would take the inventory as complete, and it is not.
                Err(failed) if observed.reported == Some(false) => {
                    Err(Passed::failed(failed.reason, failed.message))
                }
                Err(failed) => {
                    outcome.executed.failures.push(failed);
                    Ok((cr, outcome))
                }
            }
        }
        // Without its inventory on the custom resource no child is created; the status still reports the reason.
        Err(failed) => {
            let executed = Executed {
                failures: vec![failed],
                ..Executed::default()
            };
            let outcome = WriteOutcome {
                executed,
                ..WriteOutcome::default()
            };
            Ok((cr.clone(), outcome))
        }
    }
}

/// Reports a closed gate, and does nothing else.
async fn hold(
    pass: &Pass<'_>,
    observed: &Observed,
    (held, cycle): (HoldReason, &Cycle),
    now: Timestamp,
) -> Passed {
    let by = match held {
        HoldReason::Suspended => suspension::set_by(pass, observed).await,
        HoldReason::NotQueued | HoldReason::Gated => None,
    };
    let closed = (held, by.as_deref().or(cycle.unmet.as_deref()));
    let patch = gated(
        &pass.bound.plan,
        &pass.bound.crd_status,
        observed,
        closed,
        now,
    );
    let written = match write_status(pass, observed, patch).await {
        Ok(next) => next,
        Err(failed) => return Passed::failed(failed.reason, failed.message),
    };
    let woken = cycle.wake.into_iter();
    let woken = woken.map(|moment| due(&pass.shared.context.clock, now, moment));
    let due = woken.chain(cycle.requeue).min();
    Passed {
        next: soonest(due.map_or(NextPass::Settled, NextPass::After), written),
        error: None,
    }
}

/// Returns the delay until a moment that a pass at `now` asked for. A moment that had passed by then would be asked for again
/// and again.
pub(crate) fn due(clock: &Clock, now: Timestamp, moment: Timestamp) -> Duration {
    if moment <= now {
        return LEAST_WAIT;
    }
    // Timers count whole milliseconds: round up, so that none fires before the moment.
    clock.until(moment) + Duration::from_millis(1)
}

/// Runs the pure part, limited to one per core at a time, and answers its reads between rounds. None if an answer takes time:
/// the custom resource is queued again when it arrives.
async fn decide(pass: &Pass<'_>, observed: &mut Observed, now: Timestamp) -> Option<Cycle> {
    let entropy = orkestra_template::Entropy::seeded(pass.shared.context.entropy.seed());
    let mut round = 0;
    loop {
        let permit = pass.permit().await;
        let reads = match step(&pass.bound.plan, pass.bound, observed, now, &entropy) {
            StepResult::Done(cycle) => return Some(*cycle),
            StepResult::Need(reads) => reads,
        };
        drop(permit);
        // The plan limits the number of calls, so they end by themselves.
        let is_call = |read: &Read| matches!(read, Read::Call(_));
        round += usize::from(!reads.iter().all(is_call));
        if round > ROUNDS {
            let why = Answer::Unavailable("too many reads depend on each other".into());
            let refused = reads.into_iter().map(|read| (read, why.clone()));
            observed.answers.extend(refused);
            continue;
        }
        let heard = answers::answer(pass, (observed, now), reads).await;
        if heard.pending {
            return None;
        }
        observed.answers.extend(heard.answers);
    }
}

/// Returns the custom resource as the server has it now, with the status that the pass saw: a state machine moves one step
/// per pass.
fn with_snapshot(now: &Arc<CrRecord>, seen: &CrRecord) -> Arc<CrRecord> {
    let mut record = CrRecord::clone(now);
    record.view = seen.view.clone();
    record.into()
}
