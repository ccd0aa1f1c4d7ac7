//! The simulated cluster: how passes see it, and how they change it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use super::{
    Cycle, Fault, FinalObject, Op, Run, Setup, Verb,
    actor::{Actor, complete},
    outcome::happen,
    stored::{Stored, key_of, version},
    writer::Writer,
};
use crate::{
    plan::{ChildKey, GroupKind, OperatorPlan, guess_plural},
    reconcile::{
        calls,
        cycle::StepResult,
        external::answered,
        metadata::Malformed,
        preview::{assume, cross, merge},
        record::{CrRecord, Observed},
        sources::{Answer, Answers, Read},
        status::{reported, status},
        step::{self, step as decide},
        template_data::{Cleanup, Sources},
        unique::unique_text,
        verdict::Executed,
    },
    value::Node,
};

/// Why a call without an answer fails.
const NOT_MADE: &str = "calls are not made here, and no answer is given";

/// Why a stored value is not stored again: it changed without a change of the resource.
const RESTLESS: &str = "each pass would normalize the stored value to a different one";

/// The simulated cluster.
pub(super) struct World<'a> {
    setup: Setup<'a>,
    pub(super) actors: Vec<Actor<'a>>,
    pub(super) objects: BTreeMap<ChildKey, Stored>,
    pub(super) now: Timestamp,
    /// The number of writes so far, used as the resourceVersion.
    pub(super) serial: u64,
}

impl<'a> World<'a> {
    pub(super) fn new(mut setup: Setup<'a>) -> Result<Self, Malformed> {
        let now = setup.now;
        let subjects = std::mem::take(&mut setup.subjects);
        let actors = subjects.into_iter().map(|subject| Actor::new(subject, now));
        let actors = actors.collect::<Result<Vec<_>, _>>()?;
        let mut objects = BTreeMap::new();
        for mut object in std::mem::take(&mut setup.objects) {
            let namespaced = crate::plan::built_in(&assume::kind(&object)?);
            let namespaced = namespaced.is_none_or(|(_, namespaced)| namespaced);
            complete(&mut object, namespaced, now)?;
            let stored = Stored {
                object,
                written: 0,
                subject: None,
            };
            objects.insert(key_of(&stored.object)?, stored);
        }
        Ok(Self {
            setup,
            actors,
            objects,
            now,
            serial: 1000,
        })
    }

    /// Runs a pass of each subject, and then the outcomes.
    pub(super) fn cycle(&mut self, number: u32) -> Result<Cycle, Malformed> {
        let mut cycle = Cycle::default();
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

    /// Advances the time.
    pub(super) fn wait(&mut self, interval: Duration) {
        let then = self.now.checked_add(interval);
        self.now = then.unwrap_or(self.now);
    }

    /// Collects the final state.
    pub(super) fn finish(self, run: &mut Run) {
        for (key, stored) in self.objects {
            run.objects.push(FinalObject {
                is_ready: stored.is_ready(&key.kind),
                object: stored.object,
                subject: stored.subject,
                key,
            });
        }
        run.resources = self.actors.into_iter().map(|actor| actor.cr).collect();
    }

    /// Runs one pass over a subject, as the runtime does: decide, update the resource's metadata, write the children, report.
    fn pass(&mut self, index: usize, number: u32, results: &mut Cycle) -> Result<(), Malformed> {
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
        if sources.cleanup == Some(Cleanup::Due) {
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
        let mut writer = Writer {
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
        let faults = executed.failures.into_iter().map(|failure| Fault {
            subject: index,
            reason: failure.reason.as_str(),
            at: failure.at,
            message: failure.message,
        });
        results.faults.extend(faults);
        Ok(())
    }

    /// Deletes a subject as its operator does.
    fn clean_up(&mut self, index: usize, results: &mut Cycle) -> Result<(), Malformed> {
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
        sources: &mut Sources,
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

    /// Writes the status where it differs.
    pub(super) fn report(
        &mut self,
        index: usize,
        (observed, sources): (&Observed, &Sources),
        executed: &mut Executed,
        ops: &mut Vec<Op>,
    ) -> Result<(), Malformed> {
        let after = self.after(index, observed)?;
        let actor = &mut self.actors[index];
        let (plan, crd_status) = (actor.plan, &actor.crd_status);
        let Some(patch) = status(plan, crd_status, &after, sources, executed, self.now) else {
            return Ok(());
        };
        if let Some(written) = patch.body.get("status") {
            let body = Node::object([("status", written.clone())]);
            merge(&mut actor.cr, &body);
        }
        ops.push(self.op_on_cr(index, patch.subresource)?);
        Ok(())
    }

    pub(super) fn observe(&self, index: usize) -> Result<Observed, Malformed> {
        let actor = &self.actors[index];
        let cr = actor.record()?;
        let mut children = Vec::new();
        for (key, stored) in &self.objects {
            let child = stored.observe(key, actor.plan)?;
            if child.record.owner() == Some(&cr.id.uid) {
                children.push(child);
            }
        }
        Ok(Observed {
            inventory: cr.inventory.clone(),
            children,
            orphans: Vec::new(),
            unseen: BTreeSet::new(),
            reported: reported(actor.plan, &actor.crd_status, &cr),
            answers: Answers::new(),
            cr,
        })
    }

    /// Returns the state after the writes; the resource's own fields as the pass saw them.
    fn after(&self, index: usize, seen: &Observed) -> Result<Observed, Malformed> {
        let mut after = self.observe(index)?;
        let mut cr = CrRecord::clone(&after.cr);
        cr.view = seen.cr.view.clone();
        after.cr = Arc::new(cr);
        Ok(after)
    }

    fn decide(&self, index: usize, observed: &mut Observed) -> step::Cycle {
        let actor = &self.actors[index];
        loop {
            match decide(
                actor.plan,
                &actor.scopes,
                observed,
                self.now,
                &actor.entropy,
            ) {
                StepResult::Done(cycle) => return *cycle,
                // Each read is new, so this ends.
                StepResult::Need(reads) => {
                    let answers = reads
                        .into_iter()
                        .map(|read| (self.answer(index, &read), read));
                    let answers: Vec<_> = answers.collect();
                    let answers = answers.into_iter().map(|(answer, read)| (read, answer));
                    observed.answers.extend(answers);
                }
            }
        }
    }

    /// What a pass finds when it asks.
    pub(super) fn answer(&self, index: usize, read: &Read) -> Answer {
        let plan = self.actors[index].plan;
        match read {
            Read::Object(key) => match self.find(key) {
                Some(object) => Answer::Ready(Arc::new(object.clone())),
                None => Answer::Absent,
            },
            Read::Cross(read) => {
                let others = self.others(index);
                let others: Vec<Node> = others.cloned().collect();
                cross::answer(plan, read, &others)
            }
            Read::Same(path, text) => {
                let kind = plan.resource.group_kind();
                let is_same = |other: &&Node| {
                    assume::kind(other).is_ok_and(|found| found == kind)
                        && unique_text(other, path).as_ref() == Some(text)
                };
                match self.others(index).find(is_same) {
                    Some(other) => Answer::Ready(Arc::new(other.clone())),
                    None => Answer::Absent,
                }
            }
            Read::Call(request) if !self.setup.calls.contains_key(&*request.name) => {
                let answer = if self.setup.skips_calls {
                    calls::Answer {
                        status: Some(request.expected_status.unwrap_or(200)),
                        ..calls::Answer::default()
                    }
                } else {
                    calls::Answer {
                        error: Some(calls::CallFailure {
                            message: NOT_MADE.into(),
                            permanent: false,
                        }),
                        ..calls::Answer::default()
                    }
                };
                answered(&answer)
            }
            read => assume::answer(read, &[], &self.setup.calls),
        }
    }

    fn find(&self, key: &ChildKey) -> Option<&Node> {
        let stored = self.objects.get(key).map(|stored| &stored.object);
        let mut crs = self.actors.iter().map(|actor| &actor.cr);
        stored.or_else(|| crs.find(|cr| key_of(cr).is_ok_and(|found| found == *key)))
    }

    /// Returns all objects except the subject itself.
    fn others(&self, index: usize) -> impl Iterator<Item = &Node> {
        let actors = self.actors.iter().enumerate();
        let crs = actors.filter(move |(other, actor)| *other != index && !actor.is_gone);
        let objects = self.objects.values().map(|stored| &stored.object);
        crs.map(|(_, actor)| &actor.cr).chain(objects)
    }

    pub(super) fn op_on_cr(&mut self, index: usize, is_status: bool) -> Result<Op, Malformed> {
        self.serial += 1;
        let actor = &mut self.actors[index];
        version(&mut actor.cr, self.serial);
        let key = key_of(&actor.cr)?;
        Ok(Op {
            subject: index,
            verb: Verb::Patch,
            resource: plural(actor.plan, &key.kind),
            group: key.kind.group.to_string(),
            is_status,
            object: key.object,
        })
    }
}

/// Returns the plural of a kind that a plan operates or creates.
pub fn plural(plan: &OperatorPlan, kind: &GroupKind) -> String {
    let mut all = std::iter::once(&plan.resource).chain(plan.kinds());
    let known = all.find(|known| known.group_kind() == *kind);
    match known.and_then(|known| known.plural.as_deref()) {
        Some(plural) => plural.to_owned(),
        None => guess_plural(&kind.kind),
    }
}
