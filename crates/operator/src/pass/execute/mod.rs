//! The executor: applies the intents of a pass to the cluster with the fewest writes.
//!
//! ```text
//!  Apply ─► record? ─ none ──────────► apply that creates or is refused ─ 409 ─► read ─► ours: apply again
//!              │                                                                      └► not ours: NameTaken
//!              ├─ as rendered ───────► nothing
//!              ├─ other input ───────► apply without force ─ 409 ─► read ─► fields that others apply are left out, the rest forced
//!              └─ drift ─────────────► apply with force over exactly that resourceVersion
//!                                        422 ─► `takeover`: fields that updates set, and that are in the way, become ours; then again
//!                                           └► `replace`: immutable fields
//! ```
//!
//! A forced apply always carries the resourceVersion on which it was decided, so no field is taken unseen.
//!
//! Children of one wave are written concurrently, and a wave starts when the previous one has ended: namespaces before their
//! contents, objects that pods use before objects that create pods, and some kinds last.
//!
//! One file: the writes of a pass share the state of the wave.

mod decide;
mod generate;
mod grow;
mod replace;
mod takeover;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures::{StreamExt as _, stream};
use orkestra_cluster::requests::{ClusterError, Propagation};
use orkestra_engine::reconcile::{
    child_metadata::adopted,
    reason::Reason,
    record::{ChildRecord, OwnerMark, Uid},
    step::{Deletion, Failure, Intent, Rendered, lacks},
    verdict::{Action, Done, Executed},
};
use orkestra_language::reasons::RetryWhen;
use orkestra_object::{
    decode::Version,
    value::{Node, Path},
};
use orkestra_plan::{ChildKey, WriteWave};
use tokio::time::Instant;

use self::{
    decide::{Write, at_version},
    takeover::Resolved,
};
use super::{
    Pass,
    events::log_write,
    failure::{failure, withheld},
};
use crate::shared::bound_plan::{BoundPlan, Kind};

/// The children that a pass writes.
pub(crate) struct Writes {
    pub(crate) intents: Vec<Intent>,
    /// Children that cannot be rendered.
    pub(crate) failures: Vec<Failure>,
    /// Children that are missing and are not created.
    pub(crate) missing: Vec<ChildKey>,
    /// Children that the inventory names before they are created.
    pub(crate) ahead: BTreeSet<ChildKey>,
}

/// How many times one object is written in a pass before the pass gives up on it.
const ATTEMPTS: usize = 4;
/// How many children of one custom resource are written concurrently.
const SIDE_BY_SIDE: usize = 8;

/// The result of a pass's writes.
#[derive(Debug, Default)]
pub(crate) struct WriteOutcome {
    /// The part that the status reports.
    pub(crate) executed: Executed,
    /// Children of plain `onCreate` entries that exist now.
    pub(crate) made: Vec<ChildKey>,
    /// When a contested field may be written again.
    pub(crate) revisit: Option<Duration>,
}

impl WriteOutcome {
    /// Adds the result of another child's write.
    fn add(&mut self, other: Self) {
        let Self {
            executed,
            made,
            revisit,
        } = other;
        self.executed.done.extend(executed.done);
        self.executed.failures.extend(executed.failures);
        self.executed.held.extend(executed.held);
        self.executed.taken.extend(executed.taken);
        self.executed.autoscaled.extend(executed.autoscaled);
        self.made.extend(made);
        self.revisit = [self.revisit, revisit].into_iter().flatten().min();
    }
}

/// Writes the children of the custom resource `owner`. Results are in the order of the intents, whatever the order of requests;
/// a failed child does not keep others from being tried.
pub(crate) async fn execute(pass: &Pass<'_>, owner: &OwnerMark, writes: Writes) -> WriteOutcome {
    let mut outcome = WriteOutcome::default();
    outcome.executed.failures = writes.failures;
    outcome.executed.missing = writes.missing;
    for together in writes.intents.chunk_by(|a, b| wave(a) == wave(b)) {
        let writes: Vec<_> = together
            .iter()
            .map(|intent| write(pass, owner, intent))
            .collect();
        let mut written = stream::iter(writes).buffered(SIDE_BY_SIDE);
        while let Some(written) = written.next().await {
            outcome.add(written);
        }
    }
    outcome
}

/// Returns the wave in which a child is written.
fn wave(intent: &Intent) -> WriteWave {
    match intent {
        Intent::Apply(rendered) | Intent::Create(rendered) => WriteWave::of(&rendered.key.kind),
        Intent::Keep(key) | Intent::Unlink(key) => WriteWave::of(&key.kind),
        Intent::Delete(_) => WriteWave::Last,
    }
}

/// Executes the intent for one child.
async fn write(pass: &Pass<'_>, owner: &OwnerMark, intent: &Intent) -> WriteOutcome {
    let mut writer = Writer {
        pass,
        owner,
        uid: &owner.uid,
        unscaled: None,
        known: None,
        outcome: WriteOutcome::default(),
    };
    if let Some(failure) = outside(pass.bound, &owner.uid, intent) {
        writer.outcome.executed.failures.push(failure);
        return writer.outcome;
    }
    let (key, result) = match intent {
        Intent::Apply(rendered) => (&rendered.key, writer.apply(rendered).await),
        Intent::Create(rendered) if writer.lasts(rendered) => {
            (&rendered.key, writer.generate(rendered).await)
        }
        Intent::Create(rendered) => (&rendered.key, writer.create(rendered).await),
        Intent::Keep(key) => (key, Ok(Action::Unchanged)),
        Intent::Unlink(key) => (key, writer.unlink(key).await),
        Intent::Delete(deletion) => (&deletion.key, writer.delete(deletion).await),
    };
    match result {
        Ok(action) => {
            log_write(pass, &owner.key, key, action);
            writer.outcome.executed.done.push(Done {
                key: key.clone(),
                action,
            });
        }
        Err(failure) => {
            writer.expect_change(key, &failure);
            let failure = writer.guarded(intent, failure);
            writer.outcome.executed.failures.push(failure);
        }
    }
    writer.outcome
}

/// Returns why a child is not created: its namespace, or the role that it binds, must belong to the same custom resource, and does
/// not. Namespaces and roles are written before what requires them, so the store has them.
fn outside(bound: &BoundPlan, uid: &Uid, intent: &Intent) -> Option<Failure> {
    let (Intent::Apply(rendered) | Intent::Create(rendered)) = intent else {
        return None;
    };
    let is_ours = |required: &&ChildKey| {
        let kind = bound.kind(&required.kind);
        let record = kind.and_then(|kind| kind.store().get(&required.object));
        record.is_some_and(|record| record.is_ours(uid, &bound.manager))
    };
    let required = rendered.requires.iter().find(|one| !is_ours(one))?;
    Some(Failure {
        reason: Reason::TargetRefused,
        at: rendered.key.to_string(),
        message: lacks(required),
    })
}

/// Writes one child of a custom resource, in one pass.
pub(crate) struct Writer<'a> {
    pub(crate) pass: &'a Pass<'a>,
    /// The custom resource.
    pub(crate) owner: &'a OwnerMark,
    /// Its uid.
    pub(crate) uid: &'a Uid,
    /// The state of the child on which the last write was decided.
    pub(crate) known: Option<Version>,
    /// The child for which no autoscaler was found in this pass.
    pub(crate) unscaled: Option<ChildKey>,
    pub(crate) outcome: WriteOutcome,
}

impl Writer<'_> {
    /// Removes the API server's message from a failure if it may contain values of a Secret.
    fn guarded(&self, intent: &Intent, failure: Failure) -> Failure {
        let (Intent::Apply(rendered) | Intent::Create(rendered)) = intent else {
            return failure;
        };
        let declared = &self.pass.bound.plan.children[rendered.declared];
        withheld(failure, declared.shows_secrets)
    }

    /// Has the owner queued when the child changes in any way, if the failure is not retried by itself: the cause may be a field that
    /// the record does not have.
    fn expect_change(&self, key: &ChildKey, failure: &Failure) {
        if failure.reason.again() == RetryWhen::OnChange
            && let Some(known) = &self.known
            && let Some(kind) = self.pass.bound.kind(&key.kind)
        {
            kind.store().expect(&key.object, known);
        }
    }

    // Over 60 lines: an arm for each answer to an apply, and what is sent after it.
    async fn apply(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.pass.bound.kind_of(&rendered.key)?;
        let mut record = kind.store().get(&rendered.key.object);
        let (mut refused, mut replaced, mut taken) = (Vec::new(), None, Vec::new());
        for _ in 0..ATTEMPTS {
            self.known = record.as_deref().map(|one| one.id.resource_version.clone());
            let unowned;
            let rendered = match record.as_deref() {
                Some(record) if self.claim(rendered, record).await? => {
                    unowned = adopted(rendered, self.owner);
                    &unowned
                }
                _ => rendered,
            };
            let write = self
                .decide(&kind, rendered, record.as_deref(), &refused)
                .await?;
            let (body, force, drift, created) = match write {
                // An object whose deletion takes time is created again once it is gone.
                Write::Nothing => return Ok(replaced.unwrap_or(Action::Unchanged)),
                Write::Create => (
                    at_version(&rendered.object, &"1".into()),
                    true,
                    Vec::new(),
                    true,
                ),
                Write::Update { body, force, drift } => (body, force, drift, false),
            };
            let (pass, manager) = (self.pass, &self.pass.bound.manager);
            match pass
                .apply(kind.served(), &rendered.key.object, &body, manager, force)
                .await
            {
                Ok(object) => {
                    let before = record.as_deref();
                    let action = self.applied(&kind, rendered, before, &object, &drift, created);
                    self.outcome.executed.take(&rendered.key, taken);
                    return Ok(replaced.unwrap_or(action));
                }
                Err(ClusterError::Conflict { causes, .. }) => {
                    let now = self.read(&kind, &rendered.key).await?;
                    if let (Some(before), Some(now)) = (&record, &now) {
                        doubt(&kind, before, &now.id.resource_version);
                    }
                    record = now;
                    // None if the object was a different one: fields refused for that one say nothing about this one.
                    refused = causes.into_iter().map(|cause| cause.field).collect();
                }
                Err(error) => {
                    let before = record.as_deref();
                    match self.resolve(&kind, rendered, before, &error).await? {
                        Resolved::TakenOver(fields) => taken.extend(fields),
                        Resolved::Replaced(action) => replaced = Some(action),
                    }
                    record = self.read(&kind, &rendered.key).await?;
                }
            }
        }
        Err(Failure {
            reason: Reason::WriteConflict,
            at: rendered.key.to_string(),
            message: "it changed before each attempt to write it".to_owned(),
        })
    }

    pub(crate) fn applied(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        before: Option<&ChildRecord>,
        answer: &Node,
        drift: &[Path],
        created: bool,
    ) -> Action {
        kind.store().answer(answer);
        let version = answer.meta_text("resourceVersion");
        if let (Some(before), Some(version)) = (before, version) {
            doubt(kind, before, &version.into());
        }
        if let (Some(before), Some(version)) = (before, version)
            && before.id.resource_version == *version
        {
            self.pass
                .memory()
                .settle(&rendered.key, &rendered.hash, &before.id.resource_version);
            return Action::Unchanged;
        }
        if created {
            Action::Created
        } else if drift.is_empty() {
            Action::Updated
        } else {
            self.pass
                .memory()
                .force(&rendered.key, drift, Instant::now());
            self.pass.shared.metrics.drift_repaired();
            Action::Repaired
        }
    }

    /// Reads an object whose write was refused. It does not enter the store: it may lack the label that the watch selects by.
    pub(crate) async fn read(
        &self,
        kind: &Kind,
        key: &ChildKey,
    ) -> Result<Option<Arc<ChildRecord>>, Failure> {
        let kept = self.pass.bound.plan.reads.of_children(&key.kind);
        match self
            .pass
            .shared
            .requests
            .get(kind.served(), &key.object)
            .await
        {
            Ok(object) => ChildRecord::read(&key.kind, &object, kept)
                .map(|record| Some(Arc::new(record)))
                .map_err(|error| Failure {
                    reason: Reason::Unavailable,
                    at: key.to_string(),
                    message: error.to_string(),
                }),
            Err(ClusterError::NotFound(_)) => Ok(None),
            Err(error) => Err(failure(key, &error)),
        }
    }

    async fn create(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.pass.bound.kind_of(&rendered.key)?;
        let (pass, manager) = (self.pass, &self.pass.bound.manager);
        match pass
            .create(
                kind.served(),
                &rendered.key.object,
                &rendered.object,
                manager,
            )
            .await
        {
            Ok(answer) => {
                kind.store().answer(&answer);
                self.outcome.made.push(rendered.key.clone());
                Ok(Action::Created)
            }
            Err(ClusterError::AlreadyExists(_)) => match self.read(&kind, &rendered.key).await? {
                Some(record) => {
                    self.claim(rendered, &record).await?;
                    if record.predecessor(self.owner, manager).is_some() {
                        self.mark(&kind, rendered).await?;
                    }
                    self.outcome.made.push(rendered.key.clone());
                    Ok(Action::Unchanged)
                }
                None => Err(Failure {
                    reason: Reason::WriteConflict,
                    at: rendered.key.to_string(),
                    message: "it was deleted while it was being created".to_owned(),
                }),
            },
            Err(error) => Err(failure(&rendered.key, &error)),
        }
    }

    pub(crate) async fn delete(&mut self, deletion: &Deletion) -> Result<Action, Failure> {
        delete_child(self.pass, deletion, Propagation::Background).await?;
        Ok(Action::Deleted)
    }
}

/// Requests a check of the API server's state if an answer about a child is older than the version known before the request.
fn doubt(kind: &Kind, before: &ChildRecord, version: &Version) {
    if version.is_behind(&before.id.resource_version) {
        kind.store().doubt();
    }
}

/// Deletes a child; on success it is gone, or terminating if something holds it.
pub(crate) async fn delete_child(
    pass: &Pass<'_>,
    deletion: &Deletion,
    propagation: Propagation,
) -> Result<(), Failure> {
    let Deletion { key, uid } = deletion;
    let kind = pass.bound.kind_of(key)?;
    match pass
        .delete(kind.served(), &key.object, uid, propagation)
        .await
    {
        // Gone, or another object of the same name: either way the intended object no longer exists.
        Ok(_) | Err(ClusterError::NotFound(_) | ClusterError::Conflict { .. }) => Ok(()),
        Err(error) => Err(failure(key, &error)),
    }
}
