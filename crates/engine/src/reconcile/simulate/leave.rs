//! The deletion of a custom resource by its user: `onDelete`, the children that Kubernetes does not garbage-collect, then the
//! finalizer.

use super::{SimulatedCycle, SimulatedFault, stored::key_of, world::World, writer::ChildWriter};
use crate::reconcile::{
    cycle::Deletion,
    deletion::{DeletionStep, finish},
    labels::current_labels,
    metadata::Malformed,
    record::Observed,
    template_data::TemplateData,
    verdict::Executed,
    waiting_for,
};

impl World<'_> {
    /// Goes one step towards the end of a subject that is being deleted.
    pub(crate) fn leave(
        &mut self,
        index: usize,
        number: u32,
        results: &mut SimulatedCycle,
    ) -> Result<(), Malformed> {
        let mut observed = self.observe(index)?;
        let deletion = self.deletion(index, &mut observed);
        let is_held = !observed.cr.skips_on_delete && !observed.cr.orphans();
        if is_held && !deletion.is_done() {
            return self.end(index, number, (&observed, deletion), results);
        }
        let mut ops = Vec::new();
        let manager = self.actors[index].plan.field_manager();
        let cr = &observed.cr;
        if !cr.orphans() {
            let mut writer = ChildWriter {
                world: self,
                index,
                number,
                observed: &observed,
                ops: &mut ops,
            };
            for child in &observed.children {
                if child.record.is_uncollected(&cr.id.uid, &manager) {
                    writer.delete(&Deletion {
                        key: child.key.clone(),
                        uid: child.record.id.uid.clone(),
                    });
                }
            }
        }
        if self.actors[index].release() {
            ops.push(self.op_on_cr(index, false)?);
        }
        results.ops.append(&mut ops);
        if self.actors[index].is_free() {
            self.actors[index].is_gone = true;
            let key = key_of(&self.actors[index].cr)?;
            results.outcomes.push(format!("{key} is gone"));
            self.collect(&observed, results);
        }
        Ok(())
    }

    /// What is next of `onDelete`.
    fn deletion(&self, index: usize, observed: &mut Observed) -> DeletionStep {
        let actor = &self.actors[index];
        loop {
            let mut deletion = finish(
                actor.plan,
                &actor.scopes,
                observed,
                self.now,
                &actor.entropy,
            );
            if deletion.needs.is_empty() {
                return deletion;
            }
            // Each of them is new, so this ends.
            let reads = std::mem::take(&mut deletion.needs).into_iter();
            let answers: Vec<_> = reads
                .map(|read| {
                    let answer = self.answer(index, &read);
                    (read, answer)
                })
                .collect();
            observed.answers.extend(answers);
        }
    }

    /// Does a step of `onDelete`, and reports what it waits for.
    fn end(
        &mut self,
        index: usize,
        number: u32,
        (observed, deletion): (&Observed, DeletionStep),
        results: &mut SimulatedCycle,
    ) -> Result<(), Malformed> {
        let mut ops = Vec::new();
        let mut executed = Executed {
            deletion: Some(waiting_for::awaits(&deletion)),
            failures: deletion.failures.clone(),
            ..Executed::default()
        };
        let mut writer = ChildWriter {
            world: self,
            index,
            number,
            observed,
            ops: &mut ops,
        };
        for job in &deletion.make {
            writer.create(&job.key, &job.object);
        }
        for deletion in &deletion.delete {
            writer.delete(deletion);
        }
        let labels = current_labels(self.actors[index].plan, &observed.cr);
        if self.actors[index].mark(&deletion.inventory, &labels) {
            ops.push(self.op_on_cr(index, false)?);
        }
        self.report(
            index,
            (observed, &TemplateData::default()),
            &mut executed,
            &mut ops,
        )?;
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

    /// Removes the children of a custom resource that is gone, as Kubernetes' garbage collector does.
    fn collect(&mut self, observed: &Observed, results: &mut SimulatedCycle) {
        if observed.cr.orphans() {
            return;
        }
        for child in &observed.children {
            if self.objects.remove(&child.key).is_some() {
                results
                    .outcomes
                    .push(format!("{} is garbage-collected", child.key));
            }
        }
    }
}
