//! The deletion of a custom resource: `onDelete`, then deletion of the children that Kubernetes does not collect, then removal
//! of our finalizer. After `onDelete` no template is read.
//!
//! ```text
//!  finish ── on_delete: Jobs and listed children, step by step ──► children that nothing collects ──► finalizer
//!  release        a custom resource that is no longer managed: our labels and finalizers
//!  orphans        children of a custom resource that was deleted without its finalizer
//! ```

mod hidden;
mod on_delete;
pub(crate) mod orphans;

use std::{sync::Arc, time::Duration};

use orkestra_cluster::{
    requests::{ClusterError, Propagation},
    watch::WatchProblem,
};
use orkestra_engine::reconcile::{
    child_metadata::{may_reference, owner_reference},
    record::{ChildRecord, CrRecord, Observed, ObservedChild},
    step::Failure,
    verdict::{Action, Executed},
    waiting_for::{self, Unread},
};
use orkestra_language::{api::names, reasons::Reason};
use orkestra_object::value::{Key, Node};
use orkestra_plan::{ChildKey, GroupKind};

use self::{
    hidden::hidden,
    on_delete::{end, wait},
};
use crate::{
    pass::{
        NextPass, Pass, Passed,
        events::{log_write, report_failure},
        failure::{failure, failure_of_cr},
        observe, refused, soonest, unread,
    },
    shared::bound_plan::BoundPlan,
};

/// The delay before the next check for children that the watches do not show.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Goes one step towards the removal of `cr`, which is being deleted and may still have children. Its condition reports what it
/// waits for, and `skip-on-delete` ends the wait.
pub(crate) async fn finish(pass: &Pass<'_>, cr: &Arc<CrRecord>) -> Passed {
    if !cr.finalizer {
        return Passed::settled();
    }
    let observed = observe(pass.bound, cr);
    if !cr.skips_on_delete
        && let Some(passed) = before_children(pass, cr, &observed).await
    {
        return passed;
    }
    let mut left = take_down(pass, &observed).await;
    if cr.skips_on_delete {
        for failed in &left.failures {
            tracing::warn!(operator = %pass.bound.plan.name, object = %cr.id.key, child = failed.at, error = failed.message, "child is not deleted: skip-on-delete is set");
        }
        return remove_finalizer(pass, &observed).await;
    }
    if left.is_empty() {
        left = hidden(pass, cr).await;
    }
    if left.is_empty() {
        return remove_finalizer(pass, &observed).await;
    }
    let mut executed = Executed {
        failures: left.failures,
        ..Executed::default()
    };
    if !left.waiting.is_empty() {
        executed.deletion = Some(waiting_for::waiting(&left.waiting));
    }
    let passed = wait(pass, &observed, executed).await;
    if !left.look_again {
        // The deletion of the last child is an event, which queues this key again.
        return passed;
    }
    Passed {
        next: soonest(passed.next, NextPass::After(LOOK_AGAIN)),
        ..passed
    }
}

/// Does what precedes the deletion of children: everything must be readable, and `onDelete` done. None if it is.
async fn before_children(
    pass: &Pass<'_>,
    cr: &Arc<CrRecord>,
    observed: &Observed,
) -> Option<Passed> {
    if !observed.unseen.is_empty() {
        pass.shared.rebind.notify_one();
        return Some(wait(pass, observed, unseen(pass.bound, observed)).await);
    }
    let unread = |child: &&ObservedChild| child.record.is_unread_and_uncollected(&cr.id.uid);
    if let Some(child) = observed.children.iter().find(unread) {
        let executed = Executed {
            failures: unread::failure_of(child).into_iter().collect(),
            ..Executed::default()
        };
        let passed = wait(pass, observed, executed).await;
        let next = soonest(passed.next, NextPass::After(LOOK_AGAIN));
        return Some(Passed { next, ..passed });
    }
    // Neither `onDelete` nor the request of a hook is rendered from a resource of which a part is unreadable.
    let plan = &pass.bound.plan;
    if let Some(fault) = &cr.unread
        && (plan.on_delete.is_some() || plan.hooks.iter().any(|hook| hook.url(true).is_some()))
        && !cr.orphans()
    {
        return Some(unread::report(pass, cr, fault).await);
    }
    // Children that Kubernetes was asked to orphan are not deleted first.
    if cr.orphans() {
        return None;
    }
    end(pass, observed).await
}

/// Returns why it is unknown whether children are left.
fn unseen(bound: &BoundPlan, observed: &Observed) -> Executed {
    let why = |kind: &GroupKind| match bound.kind(kind).and_then(|kind| kind.problem()) {
        Some((_, WatchProblem::Forbidden { message })) => Unread::Forbidden(message),
        Some((_, WatchProblem::Unavailable { message, .. })) => Unread::Unavailable(message),
        Some((_, WatchProblem::NotServed)) | None => {
            Unread::Unavailable("they are being listed for the first time".to_owned())
        }
    };
    let kinds = observed.unseen.iter();
    Executed {
        failures: kinds
            .map(|kind| waiting_for::unread(kind, &why(kind)))
            .collect(),
        ..Executed::default()
    }
}

/// The reasons to keep a custom resource.
#[derive(Default)]
struct KeepReasons {
    /// Children that are being deleted.
    waiting: Vec<ObservedChild>,
    failures: Vec<Failure>,
    /// True if no watch shows when they are gone.
    look_again: bool,
}

impl KeepReasons {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.failures.is_empty()
    }

    /// Adds the outcome for a child.
    fn note(&mut self, child: &ObservedChild, result: Result<Option<ObservedChild>, Failure>) {
        match result {
            Ok(None) => {}
            Ok(Some(now)) => self.waiting.push(now),
            Err(failed) => self.failures.push(Failure {
                at: child.key.to_string(),
                ..failed
            }),
        }
    }
}

/// Deletes the children that Kubernetes does not collect, or releases them if they are to be orphaned. A child that cannot be
/// deleted does not keep others from being tried.
async fn take_down(pass: &Pass<'_>, observed: &Observed) -> KeepReasons {
    let cr = &observed.cr;
    let mut left = KeepReasons::default();
    let uncollected = observed.children.iter();
    for child in
        uncollected.filter(|one| one.record.is_uncollected(&cr.id.uid, &pass.bound.manager))
    {
        let result = if cr.orphans() {
            remove_labels(pass, &child.key).await.map(|()| None)
        } else {
            delete(pass, cr, child).await
        };
        left.note(child, result);
    }
    left
}

fn child(kind: &GroupKind, object: &Node) -> Option<ObservedChild> {
    let record = ChildRecord::read(kind, object, &[]).ok()?;
    Some(ObservedChild {
        key: ChildKey {
            kind: kind.clone(),
            object: record.id.key.clone(),
        },
        record: Arc::new(record),
    })
}

/// Removes our labels and finalizers from a custom resource that is no longer managed. Its children stay: those that keep values
/// get an owner reference, and those that Kubernetes still does not collect with it lose our labels. An Event reports a refusal, since its status is no longer written.
pub(crate) async fn release(pass: &Pass<'_>, cr: &Arc<CrRecord>) -> Passed {
    for child in &observe(pass.bound, cr).children {
        if !child.record.is_uncollected(&cr.id.uid, &pass.bound.manager) {
            continue;
        }
        let released = if may_be_owned(cr, child) {
            hand_over(pass, cr, &child.key).await
        } else {
            remove_labels(pass, &child.key).await
        };
        if let Err(failed) = released {
            let message = format!("{}: {}", child.key, failed.message);
            return unreleased(pass, cr, failed.reason, &message);
        }
    }
    tracing::info!(operator = %pass.bound.plan.name, object = %cr.id.key, "custom resource is no longer managed");
    let Err(error) = remove_marks(pass, cr).await else {
        return Passed::settled();
    };
    let passed = refused(pass, cr, &error);
    if passed.error.is_none() {
        return passed;
    }
    let failed = failure_of_cr(pass.bound, cr, &error);
    unreleased(pass, cr, failed.reason, &failed.message)
}

/// Reports why a custom resource that is no longer managed keeps our metadata.
fn unreleased(pass: &Pass<'_>, cr: &CrRecord, reason: Reason, message: &str) -> Passed {
    let note = || {
        format!("it is no longer managed, but its labels and finalizers are not removed: {message}")
    };
    report_failure(pass, cr, (reason, message), note);
    Passed::failed(reason, message).retried()
}

/// Deletes a child; returns the child while it still exists.
async fn delete(
    pass: &Pass<'_>,
    cr: &CrRecord,
    child: &ObservedChild,
) -> Result<Option<ObservedChild>, Failure> {
    let (key, record) = (&child.key, &child.record);
    let Some(kind) = pass.bound.kind(&key.kind) else {
        return Ok(None);
    };
    if record.deleting {
        return Ok(Some(child.clone()));
    }
    let background = Propagation::Background;
    let answer = pass
        .delete(kind.served(), &key.object, &record.id.uid, background)
        .await;
    if answer.is_ok() {
        log_write(pass, &cr.id.key, key, Action::Deleted);
    }
    match answer {
        Ok(None) | Err(ClusterError::NotFound(_) | ClusterError::Conflict { .. }) => Ok(None),
        Ok(Some(stays)) => {
            let now = self::child(&key.kind, &stays).unwrap_or_else(|| child.clone());
            kind.store().answer(&stays);
            Ok(Some(now))
        }
        Err(error) => Err(failure(key, &error)),
    }
}

/// Removes our labels from a child that stays.
async fn remove_labels(pass: &Pass<'_>, key: &ChildKey) -> Result<(), Failure> {
    let Some(kind) = pass.bound.kind(&key.kind) else {
        return Ok(());
    };
    let labels = names::CHILD_LABELS.map(|label| (label, Node::Null));
    let body = Node::object([("metadata", Node::object([("labels", Node::object(labels))]))]);
    match pass
        .patch_metadata(kind.served(), &key.object, &body, names::MANAGER)
        .await
    {
        Ok(_) | Err(ClusterError::NotFound(_)) => Ok(()),
        Err(error) => Err(failure(key, &error)),
    }
}

/// True if a child without an owner reference may have one: only our finalizer made it unnecessary.
fn may_be_owned(cr: &CrRecord, child: &ObservedChild) -> bool {
    may_reference(&cr.id.key, &child.key.object)
        && !child.record.stays_unowned()
        && !child.record.deleting
}

/// Sets an owner reference on a child that has none, so that Kubernetes collects it with its custom resource, which loses our
/// finalizer.
async fn hand_over(pass: &Pass<'_>, cr: &CrRecord, key: &ChildKey) -> Result<(), Failure> {
    let Some(kind) = pass.bound.kind(&key.kind) else {
        return Ok(());
    };
    let live = pass.shared.requests.get(kind.served(), &key.object).await;
    let live = match live {
        Ok(live) => live,
        Err(ClusterError::NotFound(_)) => return Ok(()),
        Err(error) => return Err(failure(key, &error)),
    };
    let references = live.meta("ownerReferences").and_then(Node::as_list);
    let mut references = references.unwrap_or_default().to_vec();
    references.push(owner_reference(&pass.bound.plan, &cr.id));
    let annotations = Node::object([(names::ANNOTATION_OWNER, Node::Null)]);
    let version = live.meta_text("resourceVersion").unwrap_or_default();
    let metadata = Node::object([
        ("resourceVersion", Node::from(version)),
        ("ownerReferences", Node::from(references)),
        ("annotations", annotations),
    ]);
    let body = Node::object([("metadata", metadata)]);
    let manager = &pass.bound.manager;
    match pass
        .patch_metadata(kind.served(), &key.object, &body, manager)
        .await
    {
        Ok(_) | Err(ClusterError::NotFound(_)) => Ok(()),
        Err(error) => Err(failure(key, &error)),
    }
}

/// Removes our metadata except the inventory, which still says what was created once if the resource returns.
async fn remove_marks(pass: &Pass<'_>, cr: &CrRecord) -> Result<(), ClusterError> {
    // A user may have added more to it than we wrote.
    let put = cr.inventory.checked(&pass.bound.declared);
    // The label of a child is that of the operator that created it, which would restore it.
    let managed = (!cr.is_child).then_some(names::LABEL_MANAGED);
    let in_field = |field: &'static str| {
        let of_field = put.labels.iter().filter(move |key| key.field() == field);
        of_field.map(|key| (Key::from(key.key()), Node::Null))
    };
    let labels = in_field("labels").chain(managed.map(|label| (Key::from(label), Node::Null)));
    let mut finalizers: Vec<_> = cr.other_finalizers.iter().collect();
    finalizers.retain(|name| !put.finalizers.contains(*name));
    let metadata = [
        ("resourceVersion", Node::from(&cr.id.resource_version)),
        ("labels", Node::Map(labels.collect())),
        ("annotations", Node::Map(in_field("annotations").collect())),
        (
            "finalizers",
            Node::List(finalizers.iter().map(|name| Node::from(&***name)).collect()),
        ),
    ];
    patch_cr(pass, cr, Node::object(metadata)).await
}

/// Removes our finalizer. Its condition and an Event report a refusal: nothing else shows why the custom resource stays.
async fn remove_finalizer(pass: &Pass<'_>, observed: &Observed) -> Passed {
    let cr = &observed.cr;
    let others = cr
        .other_finalizers
        .iter()
        .map(|name| Node::from(&**name))
        .collect();
    let metadata = [
        ("resourceVersion", Node::from(&cr.id.resource_version)),
        ("finalizers", Node::List(others)),
    ];
    let Err(error) = patch_cr(pass, cr, Node::object(metadata)).await else {
        return Passed::settled();
    };
    let passed = refused(pass, cr, &error);
    if passed.error.is_none() {
        return passed;
    }
    let mut failed = failure_of_cr(pass.bound, cr, &error);
    failed.message = format!("the finalizer is not removed: {error}");
    let executed = Executed {
        failures: vec![failed],
        ..Executed::default()
    };
    wait(pass, observed, executed).await.retried()
}

async fn patch_cr(pass: &Pass<'_>, cr: &CrRecord, metadata: Node) -> Result<(), ClusterError> {
    let body = Node::object([("metadata", metadata)]);
    let answer = pass
        .patch_metadata(pass.bound.served(), &cr.id.key, &body, &pass.bound.manager)
        .await?;
    // The answer for an unmanaged resource must not enter the store of managed ones.
    if pass.bound.cr(&cr.id.key).is_some() {
        pass.bound.crs.store().answer(&answer);
    }
    Ok(())
}
