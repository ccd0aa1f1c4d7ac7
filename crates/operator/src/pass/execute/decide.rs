//! Decides what to send for one child: nothing, a create, or an update that takes only permitted fields.

use orkestra_engine::reconcile::{
    child_metadata,
    differ::{Difference, HeldField, difference, without},
    forecast::{CONTROLLED, TAKEN},
    owned::{OwnValues, updated_by},
    reason::Reason,
    record::{ChildRecord, OwnerMark, Predecessor},
    step::{Failure, Rendered},
};
use orkestra_object::{
    decode::Version,
    value::{Node, Path, set},
};
use orkestra_plan::{ChildKey, ChildPlan, REPLICAS};
use tokio::time::Instant;

use super::Writer;
use crate::pass::{Pass, failure::failure, unread};
use crate::shared::{bound_plan::Kind, orphaned::live_uid};

/// The request to send for one child.
pub(crate) enum Write {
    Nothing,
    Create,
    Update {
        body: Node,
        force: bool,
        drift: Vec<Path>,
    },
}

impl Writer<'_> {
    /// Decides what to send. `refused` lists the fields that the server named when it refused the previous decision.
    pub(crate) async fn decide(
        &mut self,
        kind: &Kind,
        rendered: &Rendered,
        record: Option<&ChildRecord>,
        refused: &[String],
    ) -> Result<Write, Failure> {
        let Some(record) = record else {
            return Ok(Write::Create);
        };
        // If the object is ours, its deletion is an event that queues this key again.
        if record.deleting && self.is_own(record) {
            return Ok(Write::Nothing);
        }
        if let Some(fault) = record.unread() {
            return Err(unread::failure(&rendered.key, fault));
        }
        if rendered.is_outdated(record) {
            return Ok(Write::Nothing);
        }
        let declared = &self.pass.bound.plan.children[rendered.declared];
        let wanted = rendered.wanted(declared);
        let mut found = difference(&wanted, record, &self.pass.bound.manager, refused);
        let mut leave_out: Vec<Path> = found.held.iter().map(|held| held.path.clone()).collect();
        self.report_held(rendered, &found);
        if !found.needs_write() {
            return Ok(Write::Nothing);
        }
        let replicas = Path::of_fields(REPLICAS);
        if found.drift.contains(&replicas)
            && let Some(scaler) = self.autoscaler(declared, &rendered.key).await?
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
            // The correction of another field does not take these either.
            leave_out.extend(fought);
        }
        let version = &record.id.resource_version;
        let settled = self
            .pass
            .memory()
            .is_settled(&rendered.key, &rendered.hash, version);
        if !found.needs_write() || (settled && !found.changed) {
            return Ok(Write::Nothing);
        }
        let body = without(&rendered.object, &leave_out);
        Ok(update(body, found, version, !refused.is_empty()))
    }

    /// Reports the fields of a child that others hold, instead of those of an earlier decision: a refused write is decided again.
    fn report_held(&mut self, rendered: &Rendered, found: &Difference) {
        let executed = &mut self.outcome.executed;
        executed.held.retain(|(key, _)| *key != rendered.key);
        executed.autoscaled.retain(|(key, _)| *key != rendered.key);
        let held = found.held.iter();
        let held = held.map(|held| (rendered.key.clone(), held.clone()));
        executed.held.extend(held);
    }

    /// True if the object belongs to the custom resource, or to a deleted one of the same name.
    fn is_own(&self, record: &ChildRecord) -> bool {
        let manager = &self.pass.bound.manager;
        record.owner() == Some(self.uid) || record.predecessor(self.owner, manager).is_some()
    }

    /// Checks that the object may be written: it is ours, a deleted custom resource left it, or a backup that was restored has it,
    /// or the Katalog says `adopt` and it has no controller. The `child` annotation is not required here: removing it does not release the
    /// object. Returns whether the object must stay without an owner reference.
    pub(crate) async fn claim(
        &self,
        rendered: &Rendered,
        record: &ChildRecord,
    ) -> Result<bool, Failure> {
        let declared = &self.pass.bound.plan.children[rendered.declared];
        let controlled = record.controlled;
        let manager = &self.pass.bound.manager;
        let ours =
            record.owner() == Some(self.uid) && (controlled || record.ownership.wrote(manager));
        let inherits = match record.predecessor(self.owner, manager) {
            Some(predecessor) => self.is_gone(rendered, record, predecessor).await?,
            None => false,
        };
        if ours || inherits {
            return Ok(record.is_adopted()
                || (record.stays_unowned() && child_metadata::is_owned(rendered)));
        }
        if declared.adopt && !controlled {
            return Ok(true);
        }
        // A custom resource that was deleted and created again is faster than the garbage collector.
        let left = (controlled
            && record
                .owner()
                .is_some_and(|uid| self.pass.shared.instances.owner(uid).is_none()))
            && record.ownership.wrote(manager);
        let (reason, message) = if left {
            let message = "an object of this name was created for a custom resource that no longer exists, and is about to be garbage-collected";
            (Reason::WriteConflict, message)
        } else if controlled {
            (Reason::NameTaken, CONTROLLED)
        } else {
            (Reason::NameTaken, TAKEN)
        };
        Err(Failure {
            reason,
            at: rendered.key.to_string(),
            message: message.to_owned(),
        })
    }

    /// True if the custom resource that an object was created for is gone, or cannot have it as a child where it is. A uid never
    /// returns after deletion.
    async fn is_gone(
        &self,
        rendered: &Rendered,
        record: &ChildRecord,
        predecessor: Predecessor<'_>,
    ) -> Result<bool, Failure> {
        let bound = self.pass.bound;
        let namespace = record.id.key.namespace.as_deref();
        let is_beyond = |owner: &OwnerMark| {
            owner.key.namespace.as_deref() != namespace
                && !bound.reaches(owner, Some(&rendered.key.kind), namespace)
        };
        match predecessor {
            Predecessor::Namesake => self.is_alive(rendered).await,
            Predecessor::Elsewhere(owner) => Ok(is_beyond(owner)),
            Predecessor::Unnamed(uid) => {
                if let Some(key) = self.pass.shared.instances.owner(uid) {
                    return Ok(is_beyond(&bound.owner_mark_of(&key, uid)));
                }
                let others = self.pass.shared.context.operators.all();
                Ok(self.is_alive(rendered).await? && !others.iter().any(|one| one.owns(uid)))
            }
        }
    }

    /// True if the API server has the custom resource with the uid of this pass: then all others of its name are gone.
    async fn is_alive(&self, rendered: &Rendered) -> Result<bool, Failure> {
        let live = live_uid(self.pass.shared, self.pass.bound, &self.owner.key).await;
        let live = live.map_err(|error| failure(&rendered.key, &error))?;
        Ok(live.as_ref() == Some(self.uid))
    }

    /// Removes contested fields from `drift`, unless their pause is over, and returns them; reports the other manager.
    async fn leave_fights(
        &mut self,
        kind: &Kind,
        key: &ChildKey,
        drift: &mut Vec<Path>,
    ) -> Result<Vec<Path>, Failure> {
        let fight = self.pass.memory().fights(key, drift, Instant::now());
        let Some(fight) = fight else {
            return Ok(Vec::new());
        };
        self.pass.shared.metrics.conflicted();
        let live = self
            .pass
            .shared
            .requests
            .get(kind.served(), &key.object)
            .await;
        let live = live.map_err(|error| failure(key, &error))?;
        for path in &fight.paths {
            let manager = last_writer(&live, path, &self.pass.bound.manager)
                .unwrap_or_else(|| "an unknown field manager".to_owned());
            self.outcome.executed.held.push((
                key.clone(),
                HeldField {
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

    /// Returns the name of the `HorizontalPodAutoscaler` that targets the object: while one exists, its replicas are not
    /// ours.
    async fn autoscaler(
        &mut self,
        declared: &ChildPlan,
        key: &ChildKey,
    ) -> Result<Option<String>, Failure> {
        if !declared.may_be_scaled() || key.object.namespace.is_none() {
            return Ok(None);
        }
        // Once per pass: a write that is refused for an outdated resourceVersion is decided again immediately.
        if self.unscaled.as_ref() == Some(key) {
            return Ok(None);
        }
        let Some(owner) = self.pass.shared.instances.owner(self.uid) else {
            return Ok(None);
        };
        let Pass { shared, bound, .. } = self.pass;
        let places = bound.plan.scaled_places();
        let namespace = places.scope_of(key.object.namespace.as_deref());
        let scalers = &shared.sources.scalers;
        let found = scalers.find(&shared.requests, &owner, key, namespace).await;
        let found = found.map_err(|error| failure(key, &error))?;
        if found.is_none() {
            self.unscaled = Some(key.clone());
        }
        Ok(found)
    }
}

/// Returns the update that sends `body` over an object of that version.
fn update(body: Node, found: Difference, version: &Version, was_refused: bool) -> Write {
    // If the value of a shared field changes, the first apply is not forced: only the conflict shows which manager holds which
    // field.
    let force = !found.changed || was_refused;
    let body = if force {
        at_version(&body, version)
    } else {
        body
    };
    let drift = if found.changed {
        Vec::new()
    } else {
        found.drift
    };
    Write::Update { body, force, drift }
}

/// Returns the object with a resourceVersion that the server must find. No object has `1`: with it, the apply creates or is
/// refused.
pub(crate) fn at_version(object: &Node, version: &Version) -> Node {
    let mut object = object.clone();
    let path = Path::of_fields(["metadata", "resourceVersion"]);
    set(&mut object, &path, Node::from(version));
    object
}

/// Returns the manager other than `ours` whose update entry holds `path`; none if the field was removed.
fn last_writer(live: &Node, path: &Path, ours: &str) -> Option<String> {
    let meta = live.get("metadata")?;
    let own = OwnValues {
        name: meta.get("name")?.as_str()?,
        owner: None,
    };
    updated_by(meta.get("managedFields")?, live, path, own)
        .into_iter()
        .find(|manager| manager != ours)
}
