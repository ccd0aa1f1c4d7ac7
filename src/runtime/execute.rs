//! The executor: makes the cluster what a [`Cycle`] wants, with the fewest writes.
//!
//! ```text
//!  Apply ─► record? ─ none ──────────► apply that creates or is refused ─ 409 ─► read ─► ours: apply again
//!              │                                                                      └► a stranger's: NameTaken
//!              ├─ as rendered ───────► nothing
//!              ├─ other input ───────► apply without force ─ 409 ─► read ─► what others apply is left out, the rest forced
//!              └─ drift ─────────────► apply with force over that very resourceVersion
//! ```
//!
//! A forced apply always carries the resourceVersion it was decided on, so nothing is taken unseen.

use std::{sync::Arc, time::Duration};

use orkestra_core::{
    plan::{ChildKey, ChildPlan},
    reconcile::{
        differ::{Held, difference, without},
        reason::Reason,
        record::ChildRecord,
        status::{Action, Done, Executed},
        step::{Cycle, Deletion, Failure, Intent, Rendered},
    },
    value::{Node, Path, set},
};
use tokio::time::Instant;

use super::{
    bound::{Bound, Kind},
    memory::Memory,
    shared::Shared,
    wire::{WireError, served},
};

/// How often one object is written in a pass before the pass gives up on it.
const ATTEMPTS: usize = 4;

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

/// Executes a cycle for the custom resource with `uid`.
pub(super) async fn execute(
    shared: &Shared,
    bound: &Bound,
    uid: &str,
    memory: &mut Memory,
    cycle: Cycle,
) -> Outcome {
    let mut writer = Writer {
        shared,
        bound,
        uid,
        memory,
        outcome: Outcome::default(),
    };
    writer.outcome.executed.failures = cycle.failures;
    for intent in &cycle.intents {
        let (key, result) = match intent {
            Intent::Apply(rendered) => (&rendered.key, writer.apply(rendered).await),
            Intent::Create(rendered) => (&rendered.key, writer.create(rendered).await),
            Intent::Keep(key) => (key, Ok(Action::Unchanged)),
            Intent::Delete(deletion) => (&deletion.key, writer.delete(deletion).await),
        };
        match result {
            Ok(action) => writer.outcome.executed.done.push(Done {
                key: key.clone(),
                action,
            }),
            Err(failure) => writer.outcome.executed.failures.push(failure),
        }
    }
    writer.outcome
}

struct Writer<'a> {
    shared: &'a Shared,
    bound: &'a Bound,
    uid: &'a str,
    memory: &'a mut Memory,
    outcome: Outcome,
}

/// What must be sent for one child.
enum Write {
    Nothing,
    Create,
    Update {
        body: Node,
        force: bool,
        drift: Vec<Path>,
    },
}

impl Writer<'_> {
    fn kind(&self, key: &ChildKey) -> Result<Arc<Kind>, Failure> {
        self.bound.kind(&key.kind).ok_or_else(|| Failure {
            reason: Reason::KindNotServed,
            at: key.to_string(),
            message: format!("the API server serves no {}", key.kind),
        })
    }

    async fn apply(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.kind(&rendered.key)?;
        let mut record = kind.store().get(&rendered.key.object);
        let mut refused = false;
        for _ in 0..ATTEMPTS {
            let write = self
                .decide(&kind, rendered, record.as_deref(), refused)
                .await?;
            let (body, force, drift, created) = match write {
                Write::Nothing => return Ok(Action::Unchanged),
                Write::Create => (at_version(&rendered.object, "1"), true, Vec::new(), true),
                Write::Update { body, force, drift } => (body, force, drift, false),
            };
            let (shared, manager) = (self.shared, &self.bound.manager);
            match shared
                .apply(&kind.served, &rendered.key.object, &body, manager, force)
                .await
            {
                Ok(object) => {
                    return Ok(self.applied(
                        &kind,
                        rendered,
                        record.as_deref(),
                        &object,
                        drift,
                        created,
                    ));
                }
                Err(WireError::Conflict { .. }) => {
                    record = self.read(&kind, &rendered.key).await?;
                    refused = true;
                }
                Err(error) => return Err(failure(&rendered.key, &error)),
            }
        }
        Err(Failure {
            reason: Reason::WriteConflict,
            at: rendered.key.to_string(),
            message: "it changed each time it was to be written".to_owned(),
        })
    }

    fn applied(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        before: Option<&ChildRecord>,
        answer: &Node,
        drift: Vec<Path>,
        created: bool,
    ) -> Action {
        kind.store().answer(answer);
        let version = answer
            .get("metadata")
            .and_then(|meta| meta.get("resourceVersion"))
            .and_then(Node::as_str);
        if let (Some(before), Some(version)) = (before, version)
            && *before.id.resource_version == *version
        {
            self.memory.settle(&rendered.key, &rendered.hash, version);
        }
        if created {
            Action::Created
        } else if drift.is_empty() {
            Action::Updated
        } else {
            self.memory.force(&rendered.key, &drift, Instant::now());
            self.shared.metrics.drift_repaired();
            Action::Repaired
        }
    }

    /// Reads an object that refused a write. It does not enter the store: it may lack the label that the watch selects by.
    async fn read(&self, kind: &Kind, key: &ChildKey) -> Result<Option<Arc<ChildRecord>>, Failure> {
        match self.shared.get(&kind.served, &key.object).await {
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

    async fn decide(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        record: Option<&ChildRecord>,
        refused: bool,
    ) -> Result<Write, Failure> {
        let Some(record) = record else {
            return Ok(Write::Create);
        };
        // Its end is an event that wakes this key, if it is this key's.
        if record.deleting && record.owner() == Some(self.uid) {
            return Ok(Write::Nothing);
        }
        let declared = &self.bound.plan.children[rendered.declared];
        self.check_name(rendered, declared, record)?;
        let take = declared.force_conflict;
        let mut found = difference(
            &rendered.object,
            &rendered.hash,
            record,
            &self.bound.manager,
            take,
        );
        let mut leave_out: Vec<Path> = found.held.iter().map(|held| held.path.clone()).collect();
        let reported = &mut self.outcome.executed.held;
        // A write that was refused is decided anew.
        reported.retain(|(key, _)| *key != rendered.key);
        reported.extend(
            found
                .held
                .iter()
                .map(|held| (rendered.key.clone(), held.clone())),
        );
        let replicas = Path::parse("spec.replicas").unwrap_or_default();
        if found.drift.contains(&replicas) && self.is_autoscaled(kind, &rendered.key).await? {
            found.drift.retain(|path| *path != replicas);
            leave_out.push(replicas);
        }
        if !found.changed {
            self.leave_fights(kind, &rendered.key, &mut found.drift)
                .await?;
        }
        let settled =
            self.memory
                .is_settled(&rendered.key, &rendered.hash, &record.id.resource_version);
        if !found.needs_write() || (settled && !found.changed) {
            return Ok(Write::Nothing);
        }
        let force = refused || !found.changed;
        let body = without(&rendered.object, &leave_out);
        let body = if force {
            at_version(&body, &record.id.resource_version)
        } else {
            body
        };
        let drift = if found.changed {
            Vec::new()
        } else {
            found.drift
        };
        Ok(Write::Update { body, force, drift })
    }

    /// Whether the object may be written: it is ours, or the Katalog says `adopt` and nobody controls it. Its controller
    /// alone says that it is ours here: who takes our annotation off does not take the object.
    fn check_name(
        &self,
        rendered: &Rendered,
        declared: &ChildPlan,
        record: &ChildRecord,
    ) -> Result<(), Failure> {
        let controller = record.controller.as_deref();
        let ours = record.is_ours(self.uid, &self.bound.manager) || controller == Some(self.uid);
        if ours || (declared.adopt && controller.is_none()) {
            return Ok(());
        }
        // A custom resource that was deleted and made anew is faster than the garbage collector.
        let left = controller.is_some_and(|uid| self.shared.owner(uid).is_none())
            && record.ownership.wrote(&self.bound.manager);
        let (reason, message) = if left {
            let message = "its predecessor was made for a resource that is gone, and is about to be collected";
            (Reason::WriteConflict, message)
        } else if controller.is_some() {
            let message = "an object of this name exists, and another object controls it";
            (Reason::NameTaken, message)
        } else {
            let message = "an object of this name exists and was not made for this resource; `adopt: true` takes it over";
            (Reason::NameTaken, message)
        };
        Err(Failure {
            reason,
            at: rendered.key.to_string(),
            message: message.to_owned(),
        })
    }

    /// Takes fields out of `drift` that are fought over, unless their pause is over; reports who fights.
    async fn leave_fights(
        &mut self,
        kind: &Kind,
        key: &ChildKey,
        drift: &mut Vec<Path>,
    ) -> Result<(), Failure> {
        let Some(fight) = self.memory.fights(key, drift, Instant::now()) else {
            return Ok(());
        };
        self.shared.metrics.conflicted();
        let live = self.shared.get(&kind.served, &key.object).await;
        let live = live.map_err(|error| failure(key, &error))?;
        for path in &fight.paths {
            let manager = super::fights::last_writer(&live, path, &self.bound.manager)
                .unwrap_or_else(|| "somebody".to_owned());
            self.outcome.executed.held.push((
                key.clone(),
                Held {
                    path: path.clone(),
                    manager,
                },
            ));
        }
        if !fight.pause.is_zero() {
            drift.retain(|path| !fight.paths.contains(path));
            self.outcome.revisit = Some(
                self.outcome
                    .revisit
                    .map_or(fight.pause, |other| other.min(fight.pause)),
            );
        }
        Ok(())
    }

    /// Whether a `HorizontalPodAutoscaler` targets the object: its replicas are no longer ours then.
    async fn is_autoscaled(&mut self, kind: &Kind, key: &ChildKey) -> Result<bool, Failure> {
        if self.memory.is_autoscaled(key) {
            return Ok(true);
        }
        let found = match self
            .shared
            .list(&served::autoscalers(), key.object.namespace.as_deref())
            .await
        {
            Ok(autoscalers) => autoscalers
                .iter()
                .any(|autoscaler| targets(autoscaler, kind, key)),
            Err(WireError::NotFound(_)) => false,
            Err(error) => return Err(failure(key, &error)),
        };
        self.memory.set_autoscaled(key, found);
        Ok(found)
    }

    async fn create(&mut self, rendered: &Rendered) -> Result<Action, Failure> {
        let kind = self.kind(&rendered.key)?;
        let (shared, manager) = (self.shared, &self.bound.manager);
        match shared
            .create(
                &kind.served,
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
                    let declared = &self.bound.plan.children[rendered.declared];
                    self.check_name(rendered, declared, &record)?;
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

    async fn delete(&mut self, deletion: &Deletion) -> Result<Action, Failure> {
        let kind = self.kind(&deletion.key)?;
        match self
            .shared
            .delete(&kind.served, &deletion.key.object, &deletion.uid)
            .await
        {
            Ok(_) => Ok(Action::Deleted),
            // Gone, or another object of the name: either way the one that was meant is no more.
            Err(WireError::NotFound(_) | WireError::Conflict { .. }) => Ok(Action::Deleted),
            Err(error) => Err(failure(&deletion.key, &error)),
        }
    }
}

/// The object with a resourceVersion that the server must find. `1` is no object's: the apply creates, or is refused.
fn at_version(object: &Node, version: &str) -> Node {
    let mut object = object.clone();
    let mut path = Path::default();
    path.push_field("metadata");
    path.push_field("resourceVersion");
    set(&mut object, &path, Node::from(version));
    object
}

fn targets(autoscaler: &Node, kind: &Kind, key: &ChildKey) -> bool {
    let target = autoscaler
        .get("spec")
        .and_then(|spec| spec.get("scaleTargetRef"));
    let text = |field| {
        target
            .and_then(|target| target.get(field))
            .and_then(Node::as_str)
            .unwrap_or_default()
    };
    let group = text("apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    text("kind") == &*kind.served.kind
        && text("name") == &*key.object.name
        && group == &*kind.served.group
}

/// How a refused request is reported.
pub(super) fn failure(key: &ChildKey, error: &WireError) -> Failure {
    let reason = match error {
        WireError::Forbidden { .. } => Reason::Forbidden,
        WireError::Denied { .. } => Reason::Denied,
        WireError::NotServed(_) => Reason::KindNotServed,
        error if error.is_permanent() => Reason::Invalid,
        WireError::Conflict { .. } | WireError::AlreadyExists(_) => Reason::WriteConflict,
        _ => Reason::Unavailable,
    };
    Failure {
        reason,
        at: key.to_string(),
        message: error.to_string(),
    }
}
