//! What must be sent for one child: nothing, a creation, or an update that takes no more than it may.

use orkestra_core::{
    plan::{ChildKey, ChildPlan},
    reconcile::{
        differ::{Held, difference, without},
        owned::{Own, updated_by},
        reason::Reason,
        record::{ChildRecord, Version},
        step::{Failure, Rendered},
    },
    value::{Node, Path, set},
};
use tokio::time::Instant;

use super::{
    bound::Kind,
    execute::{Writer, failure},
    shared::lock,
    wire::{Scope, WireError, served},
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
        if record.deleting && record.owner() == Some(self.uid) {
            return Ok(Write::Nothing);
        }
        let declared = &self.bound.plan.children[rendered.declared];
        self.check_name(rendered, declared, record)?;
        let wanted = rendered.wanted(declared);
        let mut found = difference(&wanted, record, &self.bound.manager, refused);
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
        if !found.needs_write() {
            return Ok(Write::Nothing);
        }
        let replicas = Path::parse("spec.replicas").unwrap_or_default();
        if found.drift.contains(&replicas) && self.is_autoscaled(kind, &rendered.key).await? {
            found.drift.retain(|path| *path != replicas);
            leave_out.push(replicas);
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

    /// Whether the object may be written: it is ours, or the Katalog says `adopt` and nobody controls it. Its
    /// `child` annotation is not asked for here: who takes that off does not take the object.
    pub(super) fn check_name(
        &self,
        rendered: &Rendered,
        declared: &ChildPlan,
        record: &ChildRecord,
    ) -> Result<(), Failure> {
        let controlled = record.controlled;
        let manager = &self.bound.manager;
        let ours =
            record.owner() == Some(self.uid) && (controlled || record.ownership.wrote(manager));
        if ours || (declared.adopt && !controlled) {
            return Ok(());
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

    /// Whether a `HorizontalPodAutoscaler` targets the object: its replicas are no longer ours then.
    async fn is_autoscaled(&mut self, kind: &Kind, key: &ChildKey) -> Result<bool, Failure> {
        if lock(self.memory).is_autoscaled(key) {
            return Ok(true);
        }
        // Once a pass: a write that is refused for an outdated resourceVersion is decided anew at once.
        if self.unscaled.as_ref() == Some(key) {
            return Ok(false);
        }
        let scope = Scope {
            namespace: key.object.namespace.as_deref().map(str::to_owned),
            ..Scope::default()
        };
        let found = match self.shared.list(&served::autoscalers(), &scope).await {
            Ok(autoscalers) => autoscalers
                .iter()
                .any(|autoscaler| targets(autoscaler, kind, key)),
            Err(WireError::NotFound(_) | WireError::NotServed(_)) => false,
            Err(error) => return Err(failure(key, &error)),
        };
        lock(self.memory).set_autoscaled(key, found);
        if !found {
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
    text("kind") == &*kind.served().kind
        && text("name") == &*key.object.name
        && group == &*kind.served().group
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
