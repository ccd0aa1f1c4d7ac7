//! What must be sent for one child: nothing, a creation, or an update that takes no more than it may.

use orkestra_core::{
    decode::Version,
    plan::ChildKey,
    reconcile::{
        differ::{Held, difference, without},
        marks,
        owned::{Own, updated_by},
        reason::Reason,
        record::ChildRecord,
        step::{Failure, Rendered},
    },
    value::{Node, Path, set},
};
use tokio::time::Instant;

use super::{
    bound::Kind,
    execute::{Writer, failure},
    orphans::live_uid,
    shared::lock,
    unread,
};

/// What must be sent for one child.
pub(super) enum Write {
    Nothing,
    Create,
    Update {
        body: Node,
        force: bool,
        drift: Vec<Path>,
    },
}

impl Writer<'_, '_> {
    /// Decides what must be sent. `refused` are the fields that the server named when it refused what was decided before.
    pub(super) async fn decide(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        record: Option<&ChildRecord>,
        refused: &[String],
    ) -> Result<Write, Failure> {
        let Some(record) = record else {
            return Ok(Write::Create);
        };
        // Its end is an event that wakes this key, if it is this key's.
        if record.deleting && self.is_own(record) {
            return Ok(Write::Nothing);
        }
        if let Some(fault) = record.unread() {
            return Err(unread::failure(&rendered.key, fault));
        }
        let declared = &self.bound.plan.children[rendered.declared];
        let wanted = rendered.wanted(declared);
        let mut found = difference(&wanted, record, &self.bound.manager, refused);
        let mut leave_out: Vec<Path> = found.held.iter().map(|held| held.path.clone()).collect();
        let reported = &mut self.outcome.executed.held;
        // A write that was refused is decided anew.
        reported.retain(|(key, _)| *key != rendered.key);
        let scaled = &mut self.outcome.executed.autoscaled;
        scaled.retain(|(key, _)| *key != rendered.key);
        let reported = &mut self.outcome.executed.held;
        reported.extend(
            found
                .held
                .iter()
                .map(|held| (rendered.key.clone(), held.clone())),
        );
        if !found.needs_write() {
            return Ok(Write::Nothing);
        }
        let replicas = Path::of_fields(["spec", "replicas"]);
        if found.drift.contains(&replicas)
            && let Some(scaler) = self.autoscaler(&rendered.key).await?
        {
            found.drift.retain(|path| *path != replicas);
            leave_out.push(replicas);
            let scaled = &mut self.outcome.executed.autoscaled;
            scaled.push((rendered.key.clone(), scaler));
        }
        if !found.changed {
            let fought = self
                .leave_fights(kind, &rendered.key, &mut found.drift)
                .await?;
            // Another field's repair does not take them either.
            leave_out.extend(fought);
        }
        let version = &record.id.resource_version;
        let settled = lock(self.memory).is_settled(&rendered.key, &rendered.hash, version);
        if !found.needs_write() || (settled && !found.changed) {
            return Ok(Write::Nothing);
        }
        // Who shares a field with us is asked before its value changes: only then is it known who refuses which.
        let force = !found.changed || !refused.is_empty();
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

    /// Whether the object belongs to the custom resource, or to one of the same name that no longer exists.
    fn is_own(&self, record: &ChildRecord) -> bool {
        let manager = &self.bound.manager;
        record.owner() == Some(self.uid) || record.is_of_predecessor(self.owner, manager)
    }

    /// Checks that the object may be written: it is ours, a custom resource of the same name left it, or the Katalog says
    /// `adopt` and nobody controls it. Its `child` annotation is not required here: removing it does not take the object
    /// away. The result is whether it must stay without an owner reference.
    pub(super) async fn claim(
        &self,
        rendered: &Rendered,
        record: &ChildRecord,
    ) -> Result<bool, Failure> {
        let declared = &self.bound.plan.children[rendered.declared];
        let controlled = record.controlled;
        let manager = &self.bound.manager;
        let ours =
            record.owner() == Some(self.uid) && (controlled || record.ownership.wrote(manager));
        if ours
            || (record.is_of_predecessor(self.owner, manager) && self.is_alive(rendered).await?)
        {
            return Ok(record.is_adopted() || (record.stays_unowned() && marks::is_owned(rendered)));
        }
        if declared.adopt && !controlled {
            return Ok(true);
        }
        // A custom resource that was deleted and made anew is faster than the garbage collector.
        let left = (controlled
            && record
                .owner()
                .is_some_and(|uid| self.shared.owner(uid).is_none()))
            && record.ownership.wrote(manager);
        let (reason, message) = if left {
            let message = "its predecessor was made for a resource that is gone, and is about to be collected";
            (Reason::WriteConflict, message)
        } else if controlled {
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

    /// Whether the API server has the custom resource with the uid that this pass is about: then every other one of its name
    /// is gone.
    async fn is_alive(&self, rendered: &Rendered) -> Result<bool, Failure> {
        let live = live_uid(self.shared, self.bound, &self.owner.key).await;
        let live = live.map_err(|error| failure(&rendered.key, &error))?;
        Ok(live.as_ref() == Some(self.uid))
    }

    /// Takes fields out of `drift` that are fought over, unless their pause is over, and returns them; reports who fights.
    async fn leave_fights(
        &mut self,
        kind: &Kind,
        key: &ChildKey,
        drift: &mut Vec<Path>,
    ) -> Result<Vec<Path>, Failure> {
        let fight = lock(self.memory).fights(key, drift, Instant::now());
        let Some(fight) = fight else {
            return Ok(Vec::new());
        };
        self.shared.metrics.conflicted();
        let live = self.shared.get(kind.served(), &key.object).await;
        let live = live.map_err(|error| failure(key, &error))?;
        for path in &fight.paths {
            let manager = last_writer(&live, path, &self.bound.manager)
                .unwrap_or_else(|| "somebody".to_owned());
            self.outcome.executed.held.push((
                key.clone(),
                Held {
                    path: path.clone(),
                    manager,
                },
            ));
        }
        if fight.pause.is_zero() {
            return Ok(Vec::new());
        }
        drift.retain(|path| !fight.paths.contains(path));
        self.outcome.revisit = Some(
            self.outcome
                .revisit
                .map_or(fight.pause, |other| other.min(fight.pause)),
        );
        Ok(fight.paths)
    }

    /// The `HorizontalPodAutoscaler` that targets the object, by name: its replicas are not ours as long as there is one.
    async fn autoscaler(&mut self, key: &ChildKey) -> Result<Option<String>, Failure> {
        // Once a pass: a write that is refused for an outdated resourceVersion is decided anew at once.
        if self.unscaled.as_ref() == Some(key) {
            return Ok(None);
        }
        let Some(owner) = self.shared.owner(self.uid) else {
            return Ok(None);
        };
        let shared = self.shared;
        let found = shared.scalers.find(shared, &owner, key).await;
        let found = found.map_err(|error| failure(key, &error))?;
        if found.is_none() {
            self.unscaled = Some(key.clone());
        }
        Ok(found)
    }
}

/// The object with a resourceVersion that the server must find. `1` is no object's: the apply creates, or is refused.
pub(super) fn at_version(object: &Node, version: &Version) -> Node {
    let mut object = object.clone();
    let path = Path::of_fields(["metadata", "resourceVersion"]);
    set(&mut object, &path, Node::from(version));
    object
}

/// The manager other than `ours` whose update entry holds `path`; none where the field was removed.
fn last_writer(live: &Node, path: &Path, ours: &str) -> Option<String> {
    let meta = live.get("metadata")?;
    let own = Own {
        name: meta.get("name")?.as_str()?,
        owner: None,
    };
    updated_by(meta.get("managedFields")?, live, path, own)
        .into_iter()
        .find(|manager| manager != ours)
}
