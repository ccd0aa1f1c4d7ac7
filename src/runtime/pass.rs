//! One reconcile pass over one custom resource: observe, step, execute, report.

use std::{
    collections::BTreeSet,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use jiff::Timestamp;
use orkestra_cluster::{reach::Reach, wire::WireError};
use orkestra_core::{
    plan::{ChildKey, ObjectKey},
    reasons::Again,
    reconcile::{
        cleanup::Cleanup,
        emit::emitted,
        held::Held,
        record::{CrRecord, Observed, ObservedChild},
        sources::{Answer, Answers, ROUNDS, Read, Sources},
        status::{StatusPatch, gated, reported, status},
        step::{Cycle, Failure, Step, step},
        verdict::{Executed, verdict},
    },
    template,
    value::project,
};
use orkestra_ground::Clock;

use super::{
    bound::Bound,
    cleanup,
    execute::{Outcome, WITHHELD, execute},
    finish,
    memory::Memory,
    metadata::{Wanted, failure_of_cr, remember_made, write_metadata},
    normalize, orphans,
    shared::Shared,
    sources::{self, related},
    tell::{emit, ignore, tell, warn},
    unread,
};

/// The delay before a pass is retried that waits for a permission, a name or a kind.
pub(super) const WAIT: Duration = Duration::from_secs(30);

/// The delay before a pass is retried while the API server's state is compared with the records.
const UNTIL_COMPARED: Duration = Duration::from_millis(100);

/// The delay before a pass whose time has already come.
const LEAST_WAIT: Duration = Duration::from_secs(1);

/// What follows a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, until something changes.
    Settled,
    /// The same pass again, once the data it waits for is available.
    Pending,
    /// Another pass at once: this one changed fields that it reads.
    Again,
    /// A retry with backoff.
    Retry,
    /// A retry after that delay.
    After(Duration),
}

/// The result of a pass.
pub(super) struct Passed {
    pub(super) next: Next,
    /// The failure, for the operator's health; none if the pass succeeded.
    pub(super) error: Option<Failed>,
}

/// The failure of a pass.
pub(super) struct Failed {
    pub(super) message: String,
    /// Whether the custom resource's own input caused all of it, so that it does not affect the operator's health.
    pub(super) own_input: bool,
}

impl Failed {
    /// Returns the failures of a pass, described by `message`; none if nothing failed.
    pub(super) fn of(executed: &Executed, message: String) -> Option<Self> {
        let mut failures = executed.failures.iter();
        (!executed.failures.is_empty()).then(|| Self {
            message,
            own_input: failures.all(|failure| failure.reason.is_own_input()),
        })
    }
}

impl Passed {
    pub(super) fn settled() -> Self {
        Self {
            next: Next::Settled,
            error: None,
        }
    }

    pub(super) fn pending() -> Self {
        Self {
            next: Next::Pending,
            error: None,
        }
    }

    /// True if it failed while the API server was unreachable: such a failure does not concern the custom resource.
    pub(super) fn is_lost(&self, reach: &Reach) -> bool {
        self.next == Next::Retry && self.error.is_some() && !reach.is_up()
    }

    pub(super) fn failed(next: Next, error: impl Into<String>) -> Self {
        Self {
            next,
            error: Some(Failed {
                message: error.into(),
                own_input: false,
            }),
        }
    }
}

/// Collects everything that a pass over `cr` reads.
pub(super) fn observe(bound: &Bound, cr: &Arc<CrRecord>) -> Observed {
    let mut children = Vec::new();
    for kind in &bound.kinds {
        let group_kind = kind.served().group_kind();
        for (object, record) in kind.store().owned_by(&cr.id.uid) {
            children.push(ObservedChild {
                key: ChildKey {
                    kind: group_kind.clone(),
                    object,
                },
                record,
            });
        }
    }
    children.sort_by(|a, b| a.key.cmp(&b.key));
    let inventory = cr.inventory.checked(&bound.declared);
    let unseen = inventory
        .kinds
        .iter()
        .filter(|kind| !bound.sees(kind, cr.id.key.namespace.as_deref()))
        .cloned()
        .collect::<BTreeSet<_>>();
    Observed {
        cr: cr.clone(),
        inventory,
        children,
        orphans: Vec::new(),
        unseen,
        reported: reported(&bound.plan, &bound.facts, cr),
        answers: Answers::new(),
    }
}

/// Returns the custom resource of that key, if it is managed.
///
/// # Errors
/// The result of the pass without one.
async fn find(shared: &Shared, bound: &Bound, key: &ObjectKey) -> Result<Arc<CrRecord>, Passed> {
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
    Err(match bound.stray(key) {
        Some(stray) => finish::let_stray_go(shared, bound, &stray).await,
        None => orphans::clear(shared, bound, key).await,
    })
}

/// Runs a pass over the custom resource of that key.
pub(super) async fn pass(
    shared: &Shared,
    bound: &Bound,
    key: &ObjectKey,
    memory: &mut Memory,
) -> Passed {
    if bound.is_open() {
        return Passed {
            next: Next::After(UNTIL_COMPARED),
            error: None,
        };
    }
    let cr = match find(shared, bound, key).await {
        Ok(cr) => cr,
        Err(over) => return over,
    };
    if cr.deleting {
        return finish::finish(shared, bound, &cr, memory).await;
    }
    if let Some(fault) = &cr.unread {
        return unread::report(shared, bound, &cr, fault, memory).await;
    }
    reconcile(shared, bound, &cr, memory).await
}

/// Runs a pass over a readable custom resource that is not being deleted.
async fn reconcile(
    shared: &Shared,
    bound: &Bound,
    cr: &Arc<CrRecord>,
    memory: &mut Memory,
) -> Passed {
    let key = &cr.id.key;
    let mut observed = observe(bound, cr);
    observed.orphans = orphans::of(shared, bound, cr).await;
    ignore(shared, bound, &observed, memory);
    let is_known = observed
        .reported
        .unwrap_or(observed.inventory != <_>::default());
    if !observed.unseen.is_empty() {
        shared.rebind.notify_one();
    }
    shared.context.faults.run_before_pass(&bound.plan.name, key);
    let now = shared.calls.begin(key, shared.context.clock.now());
    let Some(mut cycle) = decide(shared, bound, &mut observed, now).await else {
        return Passed::pending();
    };
    shared.calls.end(key);
    let read = observed.answers.keys();
    shared.read(key, read.filter(|read| read.may_change()));
    memory.held_back = cycle.held_back;
    if let Some(held) = cycle.held_back {
        return hold(shared, bound, &observed, (held, &cycle), now).await;
    }
    let mut sources = std::mem::take(&mut cycle.sources);
    if sources.cleanup == Some(Cleanup::Due) {
        return cleanup::clean_up(shared, bound, &observed.cr).await;
    }
    let normalization = sources.prepared.normalization.as_mut();
    if let Err(over) = normalize::store(shared, bound, &mut observed, memory, normalization).await {
        return over;
    }
    let cr = observed.cr.clone();
    let (wake, requeue) = (cycle.wake, cycle.requeue);
    let doubts = std::mem::take(&mut cycle.doubts);
    let ahead = cycle.ahead.clone();
    let wanted = Wanted {
        inventory: cycle.inventory.clone(),
        labels: std::mem::take(&mut cycle.labels),
    };
    let (cr, outcome) = match write_metadata(shared, bound, &cr, &wanted).await {
        Ok(None) => return Passed::settled(),
        Ok(Some(cr)) => {
            let owner = observed.mark(&bound.plan);
            let mut outcome = execute(shared, bound, &owner, memory, cycle).await;
            let made = std::mem::take(&mut outcome.made);
            match remember_made(shared, bound, cr, wanted, &ahead, made).await {
                Ok(cr) => (cr, outcome),
                // A report now would take the inventory as complete, and it is not.
                Err(failed) => return Passed::failed(Next::Retry, failed.message),
            }
        }
        // Without its inventory on the custom resource no child is created; the status still reports the reason.
        Err(failed) => (
            cr.clone(),
            Outcome {
                executed: Executed {
                    failures: vec![failed],
                    ..Executed::default()
                },
                ..Outcome::default()
            },
        ),
    };
    let Outcome {
        mut executed,
        revisit,
        ..
    } = outcome;
    let after = Observed {
        cr: with_snapshot(&cr, &observed.cr),
        ..observe(bound, &cr)
    };
    shared.scalers.settle(key, &executed.autoscaled);
    executed.wake_at(wake);
    executed.doubt(doubts);
    let written = report(shared, bound, (&after, &sources), &mut executed, now).await;
    if !bound.plan.emits.is_empty() {
        let before = memory.emitted.clone().unwrap_or_default();
        let pass = (&after, &sources);
        let events = emitted(&bound.plan, pass, &mut executed, &before, now);
        emit(shared, bound, &after.cr, events, (memory, is_known));
    }
    // The watch does not report our own writes.
    shared.compare_anew(key);
    let verdict = verdict(&after, &executed);
    tell(shared, bound, &after, memory, &executed, &verdict);
    warn(shared, bound, &after.cr, memory, &sources.prepared.warnings);
    memory.ready = verdict.ready;
    memory.retain(|key| after.child(key).is_some());
    let clock = &shared.context.clock;
    let woken = executed.wake.map(|moment| due(clock, now, moment));
    let requeue = requeue.filter(|_| executed.failures.is_empty());
    let revisit = [revisit, woken, requeue].into_iter().flatten().min();
    let mut next = soonest(next(&executed, revisit), written);
    if related::are_new(&bound.plan, &executed) {
        next = soonest(next, Next::Again);
    }
    Passed {
        next,
        error: Failed::of(&executed, verdict.message),
    }
}

/// Reports a closed gate, and does nothing else.
async fn hold(
    shared: &Shared,
    bound: &Bound,
    observed: &Observed,
    (held, cycle): (Held, &Cycle),
    now: Timestamp,
) -> Passed {
    let closed = (held, cycle.unmet.as_deref());
    let patch = gated(&bound.plan, &bound.facts, observed, closed, now);
    let written = match write_status(shared, bound, observed, patch).await {
        Ok(next) => next,
        Err((failed, next)) => return Passed::failed(next, failed.message),
    };
    let woken = cycle.wake.into_iter();
    let woken = woken.map(|moment| due(&shared.context.clock, now, moment));
    let due = woken.chain(cycle.requeue).min();
    Passed {
        next: soonest(due.map_or(Next::Settled, Next::After), written),
        error: None,
    }
}

/// Returns the delay until a moment that a pass at `now` asked for. A moment that had passed by then would be asked for again
/// and again.
fn due(clock: &Clock, now: Timestamp, moment: Timestamp) -> Duration {
    if moment <= now {
        return LEAST_WAIT;
    }
    // Timers count whole milliseconds: round up, so that none fires before the moment.
    clock.until(moment) + Duration::from_millis(1)
}

/// Runs the pure part, limited to one per core at a time, and answers its reads between rounds. None if an answer takes time:
/// the custom resource is queued again when it arrives.
async fn decide(
    shared: &Shared,
    bound: &Bound,
    observed: &mut Observed,
    now: Timestamp,
) -> Option<Cycle> {
    let entropy = template::Entropy::seeded(shared.context.entropy.seed());
    let mut round = 0;
    loop {
        let permit = shared.context.passes.acquire().await;
        let reads = match step(&bound.plan, bound, observed, now, &entropy) {
            Step::Done(cycle) => return Some(*cycle),
            Step::Need(reads) => reads,
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
        let heard = sources::answer(shared, bound, (observed, now), reads).await;
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

/// Writes the status if it differs.
pub(super) async fn report(
    shared: &Shared,
    bound: &Bound,
    (after, sources): (&Observed, &Sources),
    executed: &mut Executed,
    now: Timestamp,
) -> Next {
    let patch = status(&bound.plan, &bound.facts, after, sources, executed, now);
    match write_status(shared, bound, after, patch).await {
        Ok(next) => next,
        Err((failed, next)) => {
            executed.failures.push(failed);
            next
        }
    }
}

/// Writes a status patch, if there is one.
///
/// # Errors
/// The failure, and what follows from it.
async fn write_status(
    shared: &Shared,
    bound: &Bound,
    after: &Observed,
    patch: Option<StatusPatch>,
) -> Result<Next, (Failure, Next)> {
    let plan = &bound.plan.hash;
    let Some(patch) = patch else {
        if reported(&bound.plan, &bound.facts, &after.cr) == Some(true) {
            shared.status_accepted(plan);
        }
        return Ok(Next::Settled);
    };
    let key = &after.cr.id.key;
    Ok(
        match shared
            .patch_status(
                bound.served(),
                key,
                patch.subresource,
                &patch.body,
                &bound.manager,
            )
            .await
        {
            Ok(answer) => {
                shared.status_accepted(plan);
                let Some(now) = bound.crs.store().answer(&answer) else {
                    return Ok(Next::Settled);
                };
                // Only a change of a path that a template reads needs another pass: a state machine continues without a
                // timer.
                let read = |record: &CrRecord| project(&record.view, &bound.plan.reads.cr);
                if read(&now) == read(&after.cr) {
                    Next::Settled
                } else {
                    Next::Again
                }
            }
            Err(WireError::NotFound(_)) => Next::Settled,
            Err(WireError::Conflict { .. }) => Next::Retry,
            Err(WireError::Forbidden { .. }) => Next::After(WAIT),
            Err(error @ WireError::Invalid { .. }) => {
                let words = if bound.plan.status_shows_secrets() {
                    WITHHELD.to_owned()
                } else {
                    error.to_string()
                };
                let mut failed = failure_of_cr(bound, &after.cr, &error);
                failed.message = format!("the status is not written: {words}");
                shared.status_refused(plan, words);
                return Err((failed, Next::Settled));
            }
            Err(error) => {
                return Err((failure_of_cr(bound, &after.cr, &error), Next::Retry));
            }
        },
    )
}

/// Returns what follows, by the failures' reasons: a permanent one waits for another input, a missing permission until it is
/// granted.
pub(super) fn next(executed: &Executed, revisit: Option<Duration>) -> Next {
    let mut next = revisit.map_or(Next::Settled, Next::After);
    for failed in &executed.failures {
        next = soonest(
            next,
            match failed.reason.again() {
                Again::OnChange => Next::Settled,
                Again::Slowly => Next::After(WAIT),
                Again::Backoff => Next::Retry,
            },
        );
    }
    next
}

pub(super) fn soonest(a: Next, b: Next) -> Next {
    match (a, b) {
        (Next::Retry, _) | (_, Next::Retry) => Next::Retry,
        (Next::Again, _) | (_, Next::Again) => Next::Again,
        (Next::After(a), Next::After(b)) => Next::After(a.min(b)),
        (Next::Pending | Next::Settled, other) | (other, Next::Pending | Next::Settled) => other,
    }
}

#[cfg(test)]
mod tests {
    use orkestra_core::reasons::Reason;

    use super::*;

    fn clock(at: &str) -> Clock {
        let now: Timestamp = at.parse().unwrap();
        Clock::new(move || now)
    }

    fn failures(reasons: &[Reason]) -> Executed {
        let failure = |reason: &Reason| Failure {
            reason: *reason,
            at: "ConfigMap shop/web".to_owned(),
            message: "no".to_owned(),
        };
        Executed {
            failures: reasons.iter().map(failure).collect(),
            ..Executed::default()
        }
    }

    #[test]
    fn what_follows_a_failure_is_the_reasons_alone() {
        for reason in Reason::ALL {
            let expected = match reason.again() {
                Again::OnChange => Next::Settled,
                Again::Slowly => Next::After(WAIT),
                Again::Backoff => Next::Retry,
            };
            assert_eq!(next(&failures(&[*reason]), None), expected, "{reason}");
            // A permanent failure is never retried with backoff, and never hides one that is.
            assert!(
                !reason.is_permanent() || expected != Next::Retry,
                "{reason}"
            );
            let both = failures(&[*reason, Reason::Unavailable]);
            assert_eq!(next(&both, None), Next::Retry, "{reason}");
        }
        let soon = Duration::from_secs(3);
        assert_eq!(
            next(&failures(&[Reason::Forbidden, Reason::Invalid]), Some(soon)),
            Next::After(soon)
        );
    }

    #[test]
    fn a_pass_is_due_at_its_moment_and_never_before() {
        let (now, nine) = ("2026-03-02T08:59:59.9995Z", "2026-03-02T09:00:00Z");
        let (now, nine) = (now.parse().unwrap(), nine.parse().unwrap());
        let wait = |at: &str| due(&clock(at), now, nine);
        // Half a millisecond more than a timer of whole milliseconds may cut off.
        assert_eq!(
            wait("2026-03-02T08:59:59.9995Z"),
            Duration::from_micros(1_500)
        );
        // The pass took longer than that: a change in the meantime is handled at once.
        assert_eq!(wait("2026-03-02T09:00:05Z"), Duration::from_millis(1));
        // The clock went back.
        assert_eq!(wait("2026-03-02T08:59:50Z"), Duration::from_millis(10_001));
    }

    #[test]
    fn a_moment_that_had_passed_when_it_was_told_is_no_hot_loop() {
        let now = "2026-03-02T09:00:00Z";
        for moment in ["2026-03-02T09:00:00Z", "2026-03-02T08:00:00Z"] {
            let (now_is, moment) = (now.parse().unwrap(), moment.parse().unwrap());
            assert_eq!(due(&clock(now), now_is, moment), LEAST_WAIT);
        }
    }
}
