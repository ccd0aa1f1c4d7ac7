//! The simulated cluster: its objects, the answers to reads, and the status of its custom resources.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use super::{
    FinalObject, Op, SimulatedRun, SimulatedSetup, Verb,
    actor::{Actor, complete},
    stored::{Stored, key_of, version},
};
use crate::reconcile::{
    calls,
    data_source::Given,
    external::answered,
    metadata::{Malformed, group_kind},
    preview::{assume, merge},
    record::{CrRecord, Observed},
    sources::{Answer, Answers, Read},
    status::{reported, status},
    template_data::TemplateData,
    unique::unique_text,
    verdict::Executed,
};
use orkestra_object::value::Node;
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan, guess_plural};

/// Why a call without an answer fails.
const NOT_MADE: &str = "a simulation makes no calls, and no response is declared";

/// The simulated cluster.
pub(crate) struct World<'a> {
    pub(crate) setup: SimulatedSetup<'a>,
    pub(crate) actors: Vec<Actor<'a>>,
    pub(crate) objects: BTreeMap<ChildKey, Stored>,
    pub(crate) now: Timestamp,
    /// The number of writes so far, used as the resourceVersion.
    pub(crate) serial: u64,
}

impl<'a> World<'a> {
    pub(crate) fn new(mut setup: SimulatedSetup<'a>) -> Result<Self, Malformed> {
        let now = setup.now;
        let subjects = std::mem::take(&mut setup.subjects);
        let actors = subjects.into_iter().map(|subject| Actor::new(subject, now));
        let actors = actors.collect::<Result<Vec<_>, _>>()?;
        let mut objects = BTreeMap::new();
        for mut object in std::mem::take(&mut setup.objects) {
            let namespaced = orkestra_plan::built_in(&group_kind(&object)?);
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

    /// Advances the time.
    pub(crate) fn wait(&mut self, interval: Duration) {
        let then = self.now.checked_add(interval);
        self.now = then.unwrap_or(self.now);
    }

    /// Collects the final state.
    pub(crate) fn finish(self, run: &mut SimulatedRun) {
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

    /// Writes the status where it differs.
    pub(crate) fn report(
        &mut self,
        index: usize,
        (observed, sources): (&Observed, &TemplateData),
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

    pub(crate) fn observe(&self, index: usize) -> Result<Observed, Malformed> {
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

    /// What a pass finds when it asks.
    pub(crate) fn answer(&self, index: usize, read: &Read) -> Answer {
        let plan = self.actors[index].plan;
        match read {
            Read::Object(key) => match self.find(key) {
                Some(object) => Answer::Ready(Arc::new(object.clone())),
                None => Answer::Absent,
            },
            Read::Same(path, text) => {
                let kind = plan.resource.group_kind();
                let is_same = |other: &&Node| {
                    group_kind(other).is_ok_and(|found| found == kind)
                        && unique_text(other, path).as_ref() == Some(text)
                };
                // Those that follow it in the file are the newcomers.
                let is_later = |other: &&Node| {
                    let mut later = self.actors[index + 1..].iter();
                    later.any(|actor| std::ptr::eq(&raw const actor.cr, *other))
                };
                let mut earlier = self.others(index).filter(|other| !is_later(other));
                match earlier.find(is_same) {
                    Some(other) => Answer::Ready(Arc::new(other.clone())),
                    None => Answer::Absent,
                }
            }
            Read::Call(request) if !self.setup.calls.contains_key(&*request.name) => {
                let answer = if self.setup.skips_calls {
                    calls::CallAnswer {
                        status: Some(request.expected_status.unwrap_or(200)),
                        ..calls::CallAnswer::default()
                    }
                } else {
                    calls::CallAnswer {
                        error: Some(calls::CallFailure {
                            message: NOT_MADE.into(),
                            permanent: false,
                            retry_after: None,
                        }),
                        ..calls::CallAnswer::default()
                    }
                };
                answered(&answer)
            }
            read => {
                let others: Vec<&Node> = self.others(index).collect();
                let given = Given {
                    plan,
                    others: &others,
                };
                assume::answer(read, (&[], &self.setup.calls), given)
            }
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

    pub(crate) fn op_on_cr(&mut self, index: usize, is_status: bool) -> Result<Op, Malformed> {
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
