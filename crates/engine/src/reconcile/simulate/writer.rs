//! The writes of a pass to the simulated cluster.

use super::{
    Op, Verb,
    stored::Stored,
    world::{World, plural},
};
use crate::reconcile::{
    child_metadata::adopted,
    cycle::{Deletion, Intent, Rendered},
    failure::Failure,
    inventory::Inventory,
    metadata::Malformed,
    reason::Reason,
    record::Observed,
    step::lacks,
    verdict::{Action, Done, Executed},
};
use orkestra_object::value::Node;
use orkestra_plan::ChildKey;

/// Writes the children of one subject, in one pass.
pub(crate) struct ChildWriter<'w, 'a> {
    pub(crate) world: &'w mut World<'a>,
    pub(crate) index: usize,
    pub(crate) number: u32,
    pub(crate) observed: &'w Observed,
    pub(crate) ops: &'w mut Vec<Op>,
}

impl ChildWriter<'_, '_> {
    pub(crate) fn write(
        &mut self,
        intent: &Intent,
        inventory: &mut Inventory,
        executed: &mut Executed,
    ) -> Result<(), Malformed> {
        let plan = self.world.actors[self.index].plan;
        let (key, written) = match intent {
            Intent::Apply(rendered) => (&rendered.key, self.apply(rendered, true)?),
            Intent::Create(rendered) => {
                let written = self.apply(rendered, false)?;
                if written.is_ok() && plan.children[rendered.declared].stays_gone() {
                    inventory.made.insert(rendered.key.clone());
                }
                (&rendered.key, written)
            }
            Intent::Keep(key) | Intent::Unlink(key) => (key, Ok(Action::Unchanged)),
            Intent::Delete(deletion) => (&deletion.key, Ok(self.delete(deletion))),
        };
        match written {
            Ok(action) => executed.done.push(Done {
                key: key.clone(),
                action,
            }),
            Err(failure) => executed.failures.push(failure),
        }
        Ok(())
    }

    /// Creates the child, or replaces it with the rendered object if it may change.
    fn apply(
        &mut self,
        rendered: &Rendered,
        may_change: bool,
    ) -> Result<Result<Action, Failure>, Malformed> {
        let key = &rendered.key;
        let plan = self.world.actors[self.index].plan;
        let uid = &self.observed.cr.id.uid;
        for required in &rendered.requires {
            let is_ours = match self.world.objects.get(required) {
                Some(stored) => stored.observe(required, plan)?.record.owner() == Some(uid),
                None => false,
            };
            if !is_ours {
                let message = lacks(required);
                return Ok(Err(refuse(key, Reason::TargetRefused, message)));
            }
        }
        self.world.serial += 1;
        let (serial, now) = (self.world.serial, self.world.now);
        let Some(stored) = self.world.objects.get_mut(key) else {
            let manager = plan.field_manager();
            let object = Stored::created(&rendered.object, key, (serial, now, &manager));
            let stored = Stored {
                object,
                written: self.number,
                subject: Some(self.index),
            };
            self.world.objects.insert(key.clone(), stored);
            self.op(Verb::Create, key);
            return Ok(Ok(Action::Created));
        };
        let record = stored.observe(key, plan)?.record;
        let mut object = &rendered.object;
        let taken;
        if record.owner() != Some(uid) {
            if record.controlled || !plan.children[rendered.declared].adopt {
                let message = "an object of this name exists and was not created for this resource";
                return Ok(Err(refuse(key, Reason::NameTaken, message.to_owned())));
            }
            taken = adopted(rendered, &self.observed.mark(plan));
            object = &taken.object;
        } else if !may_change || record.has_applied(&rendered.hash) {
            return Ok(Ok(Action::Unchanged));
        }
        stored.update(object, serial);
        stored.written = self.number;
        stored.subject = Some(self.index);
        self.op(Verb::Update, key);
        Ok(Ok(Action::Updated))
    }

    /// Creates a Job of the end, which has no owner.
    pub(crate) fn create(&mut self, key: &ChildKey, object: &Node) {
        self.world.serial += 1;
        let plan = self.world.actors[self.index].plan;
        let (serial, now) = (self.world.serial, self.world.now);
        let object = Stored::created(object, key, (serial, now, &plan.field_manager()));
        let stored = Stored {
            object,
            written: self.number,
            subject: Some(self.index),
        };
        self.world.objects.insert(key.clone(), stored);
        self.op(Verb::Create, key);
    }

    pub(crate) fn delete(&mut self, deletion: &Deletion) -> Action {
        if self.world.objects.remove(&deletion.key).is_some() {
            self.op(Verb::Delete, &deletion.key);
        }
        Action::Deleted
    }

    fn op(&mut self, verb: Verb, key: &ChildKey) {
        let plan = self.world.actors[self.index].plan;
        self.ops.push(Op {
            subject: self.index,
            verb,
            resource: plural(plan, &key.kind),
            group: key.kind.group.to_string(),
            is_status: false,
            object: key.object.clone(),
        });
    }
}

fn refuse(key: &ChildKey, reason: Reason, message: String) -> Failure {
    Failure {
        reason,
        at: key.to_string(),
        message,
    }
}
