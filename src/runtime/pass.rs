//! One pass over one custom resource: observe, step, execute, report.

use std::{collections::BTreeSet, time::Duration};

use orkestra_core::{
    api::names,
    plan::{ChildKey, ObjectKey},
    reconcile::{
        inventory::Inventory,
        reason::Reason,
        record::{CrRecord, Observed, ObservedChild},
        status::{Action, Executed, Verdict, status, verdict},
        step::{Cycle, Failure, step},
    },
    value::{Key, Map, Node, project},
};

use super::{
    bound::Bound,
    execute::{Outcome, execute, failure},
    finish,
    memory::Memory,
    shared::Shared,
    wire::WireError,
};
use crate::events::{Event, Severity};

/// How soon a pass is tried again that waits for somebody else: a right, a name, a kind.
const WAIT: Duration = Duration::from_secs(30);

/// What follows a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing, until something changes.
    Settled,
    /// Another pass at once: this one changed what it reads.
    Again,
    /// Another try, with backoff.
    Retry,
    /// Another try after that long.
    After(Duration),
}

/// What a pass came to.
pub(super) struct Passed {
    pub(super) next: Next,
    /// What failed, for the operator's health; none where all went well.
    pub(super) error: Option<String>,
}

impl Passed {
    pub(super) fn settled() -> Self {
        Self {
            next: Next::Settled,
            error: None,
        }
    }

    pub(super) fn failed(next: Next, error: impl Into<String>) -> Self {
        Self {
            next,
            error: Some(error.into()),
        }
    }
}

/// Everything that a pass over `cr` reads.
pub(super) fn observe(bound: &Bound, cr: &std::sync::Arc<CrRecord>) -> Observed {
    let mut children = Vec::new();
    for (group_kind, kind) in &bound.kinds {
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
    let unseen = cr
        .inventory
        .kinds
        .iter()
        .filter(|kind| !bound.sees(kind))
        .cloned()
        .collect::<BTreeSet<_>>();
    Observed {
        cr: cr.clone(),
        children,
        unseen,
    }
}

/// Runs a pass over the custom resource of that key.
pub(super) async fn pass(
    shared: &Shared,
    bound: &Bound,
    key: &ObjectKey,
    memory: &mut Memory,
) -> Passed {
    let Some(cr) = bound.crs.store().get(key) else {
        return Passed::settled();
    };
    if cr.deleting {
        return finish::finish(shared, bound, &cr).await;
    }
    let observed = observe(bound, &cr);
    if !observed.unseen.is_empty() {
        shared.rebind.notify_one();
    }
    shared.context.faults.run_before_pass(&bound.plan.name, key);
    let cycle = decide(shared, bound, &observed).await;
    let wanted = cycle.inventory.clone();
    let (cr, outcome) = match write_metadata(shared, bound, &cr, &wanted).await {
        Ok(None) => return Passed::settled(),
        Ok(Some(cr)) => {
            let outcome = execute(shared, bound, &cr.id.uid, memory, cycle).await;
            (cr, outcome)
        }
        // Without its inventory on the custom resource no child is made; the status still says why.
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
        made,
        revisit,
    } = outcome;
    let cr = match remember_made(shared, bound, cr, wanted, made).await {
        Ok(cr) => cr,
        Err((cr, failed)) => {
            executed.failures.push(failed);
            cr
        }
    };
    let after = Observed {
        cr: with_snapshot(&cr, &observed.cr),
        ..observe(bound, &cr)
    };
    let written = report(shared, bound, &after, &mut executed).await;
    let verdict = verdict(&after, &executed);
    tell(shared, bound, &after, memory, &executed, &verdict);
    memory.ready = verdict.ready;
    memory.retain(|key| after.child(key).is_some());
    let next = soonest(next(&executed, revisit), written);
    let failed = !executed.failures.is_empty();
    Passed {
        next,
        error: failed.then_some(verdict.message),
    }
}

/// The pure part, of which only as many run at a time as there are cores.
async fn decide(shared: &Shared, bound: &Bound, observed: &Observed) -> Cycle {
    let _permit = shared.context.passes.acquire().await;
    step(&bound.plan, &bound.scopes, observed)
}

/// The custom resource as the server has it now, with the status as the pass saw it: a state machine moves one step a pass.
fn with_snapshot(now: &std::sync::Arc<CrRecord>, seen: &CrRecord) -> std::sync::Arc<CrRecord> {
    let mut record = CrRecord::clone(now);
    record.view = seen.view.clone();
    record.into()
}

/// Sees to finalizer, label and inventory; none when the custom resource is gone.
async fn write_metadata(
    shared: &Shared,
    bound: &Bound,
    cr: &std::sync::Arc<CrRecord>,
    wanted: &Inventory,
) -> Result<Option<std::sync::Arc<CrRecord>>, Failure> {
    if cr.finalizer == bound.plan.finalizer && cr.managed && cr.inventory == *wanted {
        return Ok(Some(cr.clone()));
    }
    let body = metadata_body(bound, cr, wanted);
    match shared
        .apply_metadata(
            &bound.served,
            &cr.id.key,
            &body,
            &bound.plan.metadata_manager(),
        )
        .await
    {
        Ok(answer) => {
            if wanted.kinds != cr.inventory.kinds {
                shared.rebind.notify_one();
            }
            Ok(bound.crs.store().answer(&answer))
        }
        // The uid that the request names is no more: the custom resource was deleted, perhaps made anew.
        Err(WireError::NotFound(_) | WireError::Conflict { .. }) => Ok(None),
        Err(error) => Err(failure_of_cr(bound, cr, &error)),
    }
}

fn failure_of_cr(bound: &Bound, cr: &CrRecord, error: &WireError) -> Failure {
    failure(
        &ChildKey {
            kind: bound.plan.resource.group_kind(),
            object: cr.id.key.clone(),
        },
        error,
    )
}

fn map<const N: usize>(fields: [(&str, Node); N]) -> Node {
    Node::Map(
        fields
            .into_iter()
            .map(|(key, value)| (Key::from(key), value))
            .collect::<Map>(),
    )
}

/// What we own of the custom resource's metadata. With the uid, so that a resource that was just deleted does not come back.
fn metadata_body(bound: &Bound, cr: &CrRecord, inventory: &Inventory) -> Node {
    let mut metadata = vec![
        (Key::from("name"), Node::from(&*cr.id.key.name)),
        (Key::from("uid"), Node::from(&*cr.id.uid)),
        (
            Key::from("labels"),
            map([(names::LABEL_MANAGED, Node::from("true"))]),
        ),
    ];
    if let Some(namespace) = &cr.id.key.namespace {
        metadata.push((Key::from("namespace"), Node::from(&**namespace)));
    }
    if *inventory != Inventory::default() {
        metadata.push((
            Key::from("annotations"),
            map([(names::ANNOTATION_INVENTORY, Node::from(inventory.text()))]),
        ));
    }
    if bound.plan.finalizer {
        metadata.push((
            Key::from("finalizers"),
            Node::List([Node::from(names::FINALIZER)].into()),
        ));
    }
    map([
        ("apiVersion", Node::from(bound.plan.resource.api_version())),
        ("kind", Node::from(&*bound.plan.resource.kind)),
        ("metadata", Node::Map(metadata.into_iter().collect::<Map>())),
    ])
}

type Cr = std::sync::Arc<CrRecord>;

/// Writes down what was made once, so that it is not made again when somebody deletes it.
async fn remember_made(
    shared: &Shared,
    bound: &Bound,
    cr: Cr,
    mut inventory: Inventory,
    made: Vec<ChildKey>,
) -> Result<Cr, (Cr, Failure)> {
    let known = inventory.made.len();
    inventory.made.extend(made);
    if inventory.made.len() == known {
        return Ok(cr);
    }
    match write_metadata(shared, bound, &cr, &inventory).await {
        Ok(now) => Ok(now.unwrap_or(cr)),
        Err(failed) => Err((cr, failed)),
    }
}

/// Writes the status where it differs.
async fn report(shared: &Shared, bound: &Bound, after: &Observed, executed: &mut Executed) -> Next {
    let Some(patch) = status(
        &bound.plan,
        &bound.facts,
        after,
        executed,
        shared.context.clock.now(),
    ) else {
        return Next::Settled;
    };
    let key = &after.cr.id.key;
    match shared
        .patch_status(
            &bound.served,
            key,
            patch.subresource,
            &patch.body,
            &bound.manager,
        )
        .await
    {
        Ok(answer) => {
            shared.status_refused(None);
            let Some(now) = bound.crs.store().answer(&answer) else {
                return Next::Settled;
            };
            // Only a path that a template reads is worth another pass: a state machine goes on without a timer.
            let read = |record: &CrRecord| project(&record.view, &bound.plan.reads.cr);
            if read(&now) != read(&after.cr) {
                Next::Again
            } else {
                Next::Settled
            }
        }
        Err(WireError::NotFound(_)) => Next::Settled,
        Err(WireError::Conflict { .. }) => Next::Retry,
        Err(WireError::Forbidden { .. }) => Next::After(WAIT),
        Err(error @ WireError::Invalid { .. }) => {
            shared.status_refused(Some(error.to_string()));
            Next::Settled
        }
        Err(error) => {
            executed
                .failures
                .push(failure_of_cr(bound, &after.cr, &error));
            Next::Retry
        }
    }
}

/// An event for each pass that changed something, and one for each new trouble.
fn tell(
    shared: &Shared,
    bound: &Bound,
    after: &Observed,
    memory: &mut Memory,
    executed: &Executed,
    verdict: &Verdict,
) {
    let changes: Vec<String> = executed
        .done
        .iter()
        .filter_map(|done| change(done.action).map(|verb| format!("{verb} {}", done.key)))
        .collect();
    if !changes.is_empty() {
        publish(
            shared,
            bound,
            &after.cr,
            Severity::Normal,
            "Reconciled",
            changes.join(", "),
        );
    }
    if executed.failures.is_empty() {
        memory.reported = None;
        return;
    }
    let text = format!("{}: {}", verdict.reason.as_str(), verdict.message);
    if memory.reported.as_ref() != Some(&text) {
        tracing::warn!(operator = %bound.plan.name, object = %after.cr.id.key, reason = verdict.reason.as_str(), error = %verdict.message, "pass failed");
        publish(
            shared,
            bound,
            &after.cr,
            Severity::Warning,
            verdict.reason.as_str(),
            verdict.message.clone(),
        );
        memory.reported = Some(text);
    }
}

fn change(action: Action) -> Option<&'static str> {
    match action {
        Action::Unchanged => None,
        Action::Created => Some("created"),
        Action::Updated => Some("updated"),
        Action::Repaired => Some("repaired"),
        Action::Deleted => Some("deleted"),
    }
}

pub(super) fn publish(
    shared: &Shared,
    bound: &Bound,
    cr: &CrRecord,
    severity: Severity,
    reason: &'static str,
    note: String,
) {
    let regarding = k8s_openapi::api::core::v1::ObjectReference {
        api_version: Some(bound.plan.resource.api_version()),
        kind: Some(bound.plan.resource.kind.to_string()),
        name: Some(cr.id.key.name.to_string()),
        namespace: cr.id.key.namespace.as_deref().map(str::to_owned),
        uid: Some(cr.id.uid.to_string()),
        ..Default::default()
    };
    shared.context.events.publish(Event {
        regarding,
        severity,
        reason,
        note,
    });
}

/// What follows: a permanent failure waits for another input, a missing right for whoever grants it, all else is tried again.
fn next(executed: &Executed, revisit: Option<Duration>) -> Next {
    let mut next = revisit.map_or(Next::Settled, Next::After);
    for failed in &executed.failures {
        next = soonest(
            next,
            match failed.reason {
                Reason::Forbidden | Reason::NameTaken | Reason::KindNotServed => Next::After(WAIT),
                reason if reason.is_permanent() => Next::Settled,
                _ => Next::Retry,
            },
        );
    }
    next
}

fn soonest(a: Next, b: Next) -> Next {
    match (a, b) {
        (Next::Retry, _) | (_, Next::Retry) => Next::Retry,
        (Next::Again, _) | (_, Next::Again) => Next::Again,
        (Next::After(a), Next::After(b)) => Next::After(a.min(b)),
        (Next::Settled, other) | (other, Next::Settled) => other,
    }
}
