//! The executor: makes the cluster what a [`Cycle`] wants, with the fewest writes.
//!
//! ```text
//!  Apply ─► record? ─ none ──────────► apply that creates or is refused ─ 409 ─► read ─► ours: apply again
//!              │                                                                      └► a stranger's: NameTaken
//!              ├─ as rendered ───────► nothing
//!              ├─ other input ───────► apply without force ─ 409 ─► read ─► what others apply of it is left out, the rest forced
//!              └─ drift ─────────────► apply with force over that very resourceVersion
//! ```
//!
//! A forced apply always carries the resourceVersion it was decided on, so nothing is taken unseen.
//!
//! Children of one wave are written side by side, and a wave begins when the one before it has ended: what lives in a
//! namespace after the namespace, what pods use before what makes pods, what goes last of all.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, stream};
use orkestra_cluster::wire::{Propagation, WireError};
use orkestra_core::{
    decode::Version,
    plan::{ChildKey, Wave},
    reconcile::{
        marks::adopted,
        proof::OwnerMark,
        reason::Reason,
        record::{ChildRecord, Uid},
        step::{Cycle, Deletion, Failure, Intent, Rendered, not_created},
        verdict::{Action, Done, Executed},
    },
    value::{Node, Path},
};
use tokio::time::Instant;

use super::{
    bound::{Bound, Kind},
    decide::{Write, at_version},
    log::log_write,
    memory::Memory,
    shared::{Shared, lock},
};

/// How often one object is written in a pass before the pass gives up on it.
const ATTEMPTS: usize = 4;
/// How many children of one custom resource are written at a time.
const SIDE_BY_SIDE: usize = 8;

/// Stands for words of the API server that may hold a Secret's values.
pub(super) const WITHHELD: &str =
    "the API server's words are withheld: the object is made of a Secret's values";

/// What a pass's writes came to.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    /// What the status tells.
    pub(super) executed: Executed,
    /// Children of plain `onCreate` entries that exist now.
    pub(super) made: Vec<ChildKey>,
    /// When a fought-over field may be written again.
    pub(super) revisit: Option<Duration>,
}

impl Outcome {
    /// Takes in what the write of another child came to.
    fn add(&mut self, other: Self) {
        let Self {
            executed,
            made,
            revisit,
        } = other;
        self.executed.done.extend(executed.done);
        self.executed.failures.extend(executed.failures);
        self.executed.held.extend(executed.held);
        self.executed.autoscaled.extend(executed.autoscaled);
        self.made.extend(made);
        self.revisit = [self.revisit, revisit].into_iter().flatten().min();
    }
}

/// Executes a cycle for the custom resource `owner`. Whatever comes first on the wire, what is told is in the order of
/// the intents; one that fails keeps no other from being tried.
pub(super) async fn execute(
    shared: &Shared,
    bound: &Bound,
    owner: &OwnerMark,
    memory: &mut Memory,
    cycle: Cycle,
) -> Outcome {
    let memory = Mutex::new(memory);
    let mut outcome = Outcome::default();
    outcome.executed.failures = cycle.failures;
    outcome.executed.missing = cycle.missing;
    for together in cycle.intents.chunk_by(|a, b| wave(a) == wave(b)) {
        let writes: Vec<_> = together
            .iter()
            .map(|intent| write(shared, bound, owner, &memory, intent))
            .collect();
        let mut written = stream::iter(writes).buffered(SIDE_BY_SIDE);
        while let Some(written) = written.next().await {
            outcome.add(written);
        }
    }
    outcome
}

/// When a child has its turn.
fn wave(intent: &Intent) -> Wave {
    match intent {
        Intent::Apply(rendered) | Intent::Create(rendered) => Wave::of(&rendered.key.kind),
        Intent::Keep(key) => Wave::of(&key.kind),
        Intent::Delete(_) => Wave::Last,
    }
}

/// Does what is wanted of one child.
async fn write(
    shared: &Shared,
    bound: &Bound,
    owner: &OwnerMark,
    memory: &Mutex<&mut Memory>,
    intent: &Intent,
) -> Outcome {
    let mut writer = Writer {
        shared,
        bound,
        owner,
        uid: &owner.uid,
        memory,
        unscaled: None,
        outcome: Outcome::default(),
    };
    if let Some(failure) = outside(bound, &owner.uid, intent) {
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
        Intent::Delete(deletion) => (&deletion.key, writer.delete(deletion).await),
    };
    match result {
        Ok(action) => {
            log_write(shared, bound, &owner.key, key, action);
            writer.outcome.executed.done.push(Done {
                key: key.clone(),
                action,
            });
        }
        Err(failure) => {
            let failure = writer.guarded(intent, failure);
            writer.outcome.executed.failures.push(failure);
        }
    }
    writer.outcome
}

/// Why a child is not created: its namespace has to be the same custom resource's, and is not. Namespaces are written before
/// what lives in them, so the store knows.
fn outside(bound: &Bound, uid: &Uid, intent: &Intent) -> Option<Failure> {
    let (Intent::Apply(rendered) | Intent::Create(rendered)) = intent else {
        return None;
    };
    let namespace = rendered.within.as_ref()?;
    let kind = bound.kind(&namespace.kind);
    let record = kind.and_then(|kind| kind.store().get(&namespace.object));
    let is_ours = record.is_some_and(|record| record.is_ours(uid, &bound.manager));
    (!is_ours).then(|| Failure {
        reason: Reason::TargetRefused,
        at: rendered.key.to_string(),
        message: not_created(&namespace.object.name),
    })
}

/// Writes one child of a custom resource, in one pass.
pub(super) struct Writer<'a, 'm> {
    pub(super) shared: &'a Shared,
    pub(super) bound: &'a Bound,
    /// The custom resource.
    pub(super) owner: &'a OwnerMark,
    /// Its uid.
    pub(super) uid: &'a Uid,
    /// Of all its children: each has a part of its own in it.
    pub(super) memory: &'a Mutex<&'m mut Memory>,
    /// The child that no autoscaler was found for in this pass.
    pub(super) unscaled: Option<ChildKey>,
    pub(super) outcome: Outcome,
}

impl Writer<'_, '_> {
    /// The failure without words of the API server where these may hold values of a Secret.
    fn guarded(&self, intent: &Intent, failure: Failure) -> Failure {
        let (Intent::Apply(rendered) | Intent::Create(rendered)) = intent else {
            return failure;
        };
        let plan = &self.bound.plan;
        let has_words = matches!(
            failure.reason,
            Reason::Invalid | Reason::Denied | Reason::Unavailable
        );
        if has_words && plan.shows_secrets(&plan.children[rendered.declared]) {
            return Failure {
                message: WITHHELD.to_owned(),
                ..failure
            };
        }
        failure
    }

    async fn apply(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.bound.kind_of(&rendered.key)?;
        let mut record = kind.store().get(&rendered.key.object);
        let (mut refused, mut replaced) = (Vec::new(), None);
        for _ in 0..ATTEMPTS {
            let taken;
            let rendered = match record.as_deref() {
                Some(record) if self.claim(rendered, record).await? => {
                    taken = adopted(rendered, self.owner);
                    &taken
                }
                _ => rendered,
            };
            let write = self
                .decide(&kind, rendered, record.as_deref(), &refused)
                .await?;
            let (body, force, drift, created) = match write {
                // One that goes slowly is created again once it is gone.
                Write::Nothing => return Ok(replaced.unwrap_or(Action::Unchanged)),
                Write::Create => (
                    at_version(&rendered.object, &"1".into()),
                    true,
                    Vec::new(),
                    true,
                ),
                Write::Update { body, force, drift } => (body, force, drift, false),
            };
            let (shared, manager) = (self.shared, &self.bound.manager);
            match shared
                .apply(kind.served(), &rendered.key.object, &body, manager, force)
                .await
            {
                Ok(object) => {
                    let before = record.as_deref();
                    let action = self.applied(&kind, rendered, before, &object, &drift, created);
                    return Ok(replaced.unwrap_or(action));
                }
                Err(WireError::Conflict { causes, .. }) => {
                    let now = self.read(&kind, &rendered.key).await?;
                    if let (Some(before), Some(now)) = (&record, &now) {
                        doubt(&kind, before, &now.id.resource_version);
                    }
                    record = now;
                    // None where the object itself was another: what was refused of that says nothing of this one.
                    refused = causes.into_iter().map(|cause| cause.field).collect();
                }
                Err(error) => {
                    let before = record.as_deref();
                    replaced = Some(self.replace(&kind, rendered, before, &error).await?);
                    record = self.read(&kind, &rendered.key).await?;
                }
            }
        }
        Err(Failure {
            reason: Reason::WriteConflict,
            at: rendered.key.to_string(),
            message: "it changed each time it was to be written".to_owned(),
        })
    }

    pub(super) fn applied(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        before: Option<&ChildRecord>,
        answer: &Node,
        drift: &[Path],
        created: bool,
    ) -> Action {
        kind.store().answer(answer);
        let version = answer
            .get("metadata")
            .and_then(|meta| meta.get("resourceVersion"))
            .and_then(Node::as_str);
        if let (Some(before), Some(version)) = (before, version) {
            doubt(kind, before, &version.into());
        }
        if let (Some(before), Some(version)) = (before, version)
            && before.id.resource_version == *version
        {
            lock(self.memory).settle(&rendered.key, &rendered.hash, &before.id.resource_version);
            return Action::Unchanged;
        }
        if created {
            Action::Created
        } else if drift.is_empty() {
            Action::Updated
        } else {
            lock(self.memory).force(&rendered.key, drift, Instant::now());
            self.shared.metrics.drift_repaired();
            Action::Repaired
        }
    }

    /// Reads an object that refused a write. It does not enter the store: it may lack the label that the watch selects by.
    pub(super) async fn read(
        &self,
        kind: &Kind,
        key: &ChildKey,
    ) -> Result<Option<Arc<ChildRecord>>, Failure> {
        match self.shared.get(kind.served(), &key.object).await {
            Ok(object) => ChildRecord::read(&key.kind, &object, &[])
                .map(|record| Some(Arc::new(record)))
                .map_err(|error| Failure {
                    reason: Reason::Unavailable,
                    at: key.to_string(),
                    message: error.to_string(),
                }),
            Err(WireError::NotFound(_)) => Ok(None),
            Err(error) => Err(failure(key, &error)),
        }
    }

    async fn create(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.bound.kind_of(&rendered.key)?;
        let (shared, manager) = (self.shared, &self.bound.manager);
        match shared
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
            Err(WireError::AlreadyExists(_)) => match self.read(&kind, &rendered.key).await? {
                Some(record) => {
                    self.claim(rendered, &record).await?;
                    if record.is_of_predecessor(self.owner, manager) {
                        self.mark(&kind, rendered).await?;
                    }
                    self.outcome.made.push(rendered.key.clone());
                    Ok(Action::Unchanged)
                }
                None => Err(Failure {
                    reason: Reason::WriteConflict,
                    at: rendered.key.to_string(),
                    message: "it was deleted while it was to be made".to_owned(),
                }),
            },
            Err(error) => Err(failure(&rendered.key, &error)),
        }
    }

    pub(super) async fn delete(&mut self, deletion: &Deletion) -> Result<Action, Failure> {
        delete_child(self.shared, self.bound, deletion, Propagation::Background).await?;
        Ok(Action::Deleted)
    }
}

/// Has the API server's state looked at where an answer about a child is older than what was known before the request.
fn doubt(kind: &Kind, before: &ChildRecord, version: &Version) {
    if version.is_behind(&before.id.resource_version) {
        kind.store().doubt();
    }
}

/// Deletes a child, so that it is gone, or going if something holds it.
pub(super) async fn delete_child(
    shared: &Shared,
    bound: &Bound,
    deletion: &Deletion,
    propagation: Propagation,
) -> Result<(), Failure> {
    let Deletion { key, uid } = deletion;
    let kind = bound.kind_of(key)?;
    match shared
        .delete(kind.served(), &key.object, uid, propagation)
        .await
    {
        // Gone, or another object of the name: either way the one that was meant is no more.
        Ok(_) | Err(WireError::NotFound(_) | WireError::Conflict { .. }) => Ok(()),
        Err(error) => Err(failure(key, &error)),
    }
}

/// How a refused request is reported.
pub(super) fn failure(key: &ChildKey, error: &WireError) -> Failure {
    Failure {
        reason: error.reason(),
        at: key.to_string(),
        message: error.to_string(),
    }
}
