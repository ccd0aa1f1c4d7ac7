//! A pass over a custom resource in the simulated cluster, as the runtime runs it, and the cycle that it belongs to.

use super::{
    Op, SimulatedCycle, SimulatedFault, Verb,
    outcome::happen,
    stored::{key_of, version},
    world::World,
    writer::ChildWriter,
};
use crate::reconcile::{
    metadata::Malformed,
    record::Observed,
    step::{self, decided},
    template_data::{CleanupState, TemplateData},
    verdict::Executed,
};
use orkestra_object::value::Node;

/// Why a stored value is not stored again: it changed without a change of the resource.
const RESTLESS: &str = "each pass would normalize the stored value to a different one";

impl World<'_> {
    /// Runs a pass of each subject, and then the outcomes.
    pub(crate) fn cycle(&mut self, number: u32) -> Result<SimulatedCycle, Malformed> {
        let mut cycle = SimulatedCycle::default();
        for index in 0..self.actors.len() {
            self.pass(index, number, &mut cycle)?;
        }
        let now = self.now.to_string();
        for (key, stored) in &mut self.objects {
            if let Some(what) = happen(key, stored, (self.setup.outcomes, number), &now) {
                self.serial += 1;
                version(&mut stored.object, self.serial);
                cycle.outcomes.push(format!("{key} {what}"));
            }
        }
        let due = self.setup.changes.iter();
        for (index, change) in due.filter(|(_, change)| change.after == number) {
            let Some(actor) = self.actors.get_mut(*index).filter(|actor| !actor.is_gone) else {
                continue;
            };
            let key = key_of(&actor.cr)?;
            if let Some(patch) = &change.patch {
                actor.change(patch);
                cycle.outcomes.push(format!("{key} is changed by its user"));
            } else {
                actor.request_deletion(self.now);
                cycle.outcomes.push(format!("{key} is deleted by its user"));
            }
        }
        Ok(cycle)
    }

    /// Runs one pass over a subject, as the runtime does: decide, update the resource's metadata, write the children, report.
    fn pass(
        &mut self,
        index: usize,
        number: u32,
        results: &mut SimulatedCycle,
    ) -> Result<(), Malformed> {
        if self.actors[index].is_gone {
            return Ok(());
        }
        if self.actors[index].is_deleting() {
            return self.leave(index, number, results);
        }
        let mut observed = self.observe(index)?;
        let mut cycle = self.decide(index, &mut observed);
        if cycle.held_back.is_some() {
            results.held.push(index);
            return Ok(());
        }
        let mut sources = std::mem::take(&mut cycle.sources);
        if sources.cleanup == Some(CleanupState::Due) {
            return self.clean_up(index, results);
        }
        let mut ops = Vec::new();
        self.normalize(index, &mut observed, &mut sources, &mut ops)?;
        let mut inventory = cycle.inventory.clone();
        if self.actors[index].mark(&inventory, &cycle.labels) {
            ops.push(self.op_on_cr(index, false)?);
        }
        let mut executed = Executed {
            failures: std::mem::take(&mut cycle.failures),
            missing: std::mem::take(&mut cycle.missing),
            doubts: std::mem::take(&mut cycle.doubts),
            ..Executed::default()
        };
        let mut writer = ChildWriter {
            world: self,
            index,
            number,
            observed: &observed,
            ops: &mut ops,
        };
        inventory.made.retain(|key| !cycle.ahead.contains(key));
        for intent in &cycle.intents {
            writer.write(intent, &mut inventory, &mut executed)?;
        }
        if self.actors[index].mark(&inventory, &cycle.labels) {
            ops.push(self.op_on_cr(index, false)?);
        }
        self.report(index, (&observed, &sources), &mut executed, &mut ops)?;
        results.ops.append(&mut ops);
        let faults = executed.failures.into_iter().map(|failure| SimulatedFault {
            subject: index,
            reason: failure.reason.as_str(),
            at: failure.at,
            message: failure.message,
        });
        results.faults.extend(faults);
        Ok(())
    }

    /// Deletes a subject as its operator does.
    fn clean_up(&mut self, index: usize, results: &mut SimulatedCycle) -> Result<(), Malformed> {
        let deleted = self.op_on_cr(index, false)?;
        self.actors[index].request_deletion(self.now);
        results.ops.push(Op {
            verb: Verb::Delete,
            ..deleted
        });
        Ok(())
    }

    /// Stores the normalized fields of the resource, once for each change by its user.
    fn normalize(
        &mut self,
        index: usize,
        observed: &mut Observed,
        sources: &mut TemplateData,
        ops: &mut Vec<Op>,
    ) -> Result<(), Malformed> {
        let Some(normalization) = sources.prepared.normalization.as_mut() else {
            return Ok(());
        };
        let Some(patch) = normalization.patch.clone() else {
            return Ok(());
        };
        let actor = &mut self.actors[index];
        if actor.is_normalized {
            normalization.withhold(RESTLESS);
            return Ok(());
        }
        normalization.patch = None;
        actor.change(&Node::object([("spec", patch)]));
        actor.is_normalized = true;
        observed.cr = actor.record()?;
        ops.push(self.op_on_cr(index, false)?);
        Ok(())
    }

    fn decide(&self, index: usize, observed: &mut Observed) -> step::Cycle {
        let actor = &self.actors[index];
        let (plan, when) = (actor.plan, (self.now, &actor.entropy));
        decided(plan, &actor.scopes, observed, when, |read| {
            self.answer(index, read)
        })
    }
}
