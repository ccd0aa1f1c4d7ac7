//! Passes against stored objects: a simulated executor without network requests.

use std::{collections::BTreeMap, collections::BTreeSet, sync::Arc};

use orkestra_engine::reconcile::{
    differ::{Difference, HeldField, difference, without},
    record::{ChildRecord, CrRecord, Observed, ObservedChild, OwnerMark},
    sources::{Answer, Answers, CERTIFICATE_PARTS, Certificate, ROUNDS, Read},
    step::{Cycle, Intent, Rendered, StepResult, step},
};
use orkestra_object::value::{Node, Path};
use orkestra_plan::{ChildKey, GroupKind, OperatorPlan};
use orkestra_template::Entropy;
use serde_json::Value;

use super::{
    leaves::{Trail, refusal},
    operator::{MANAGER, record},
    server::{Operation, Stored},
};

/// A cluster with one custom resource.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) plan: Arc<OperatorPlan>,
    pub(crate) cr: Value,
    pub(crate) objects: BTreeMap<ChildKey, Stored>,
    pub(crate) unseen: BTreeSet<GroupKind>,
    pub(crate) scopes: BTreeMap<GroupKind, bool>,
    pub(crate) reported: Option<bool>,
    /// The results of a pass' reads; all other reads find nothing.
    pub(crate) outside: Answers,
    /// The time of the next pass.
    pub(crate) now: jiff::Timestamp,
    /// The number of objects created so far, so that each one gets a new uid.
    made: usize,
}

/// The result of one pass.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    pub(crate) cycle: Cycle,
    /// Children that were written or deleted.
    pub(crate) written: Vec<ChildKey>,
    /// The fields that other managers own.
    pub(crate) held: Vec<(ChildKey, HeldField)>,
}

impl World {
    pub(crate) fn new(plan: &Arc<OperatorPlan>, cr: Value) -> Self {
        Self {
            plan: plan.clone(),
            cr,
            objects: BTreeMap::new(),
            unseen: BTreeSet::new(),
            reported: None,
            outside: Answers::new(),
            now: jiff::Timestamp::UNIX_EPOCH,
            scopes: scopes(plan),
            made: 0,
        }
    }

    pub(crate) fn cr(&self) -> Arc<CrRecord> {
        record(&self.plan, &self.cr)
    }

    /// Returns the operator's record of an object.
    pub(crate) fn record_of(&self, key: &ChildKey) -> ChildRecord {
        let reads = self.plan.reads.of_children(&key.kind);
        let object = Node::from(&self.objects[key].object());
        ChildRecord::read(&key.kind, &object, reads).unwrap()
    }

    /// Returns the observation of a pass: the objects that belong to the custom resource.
    pub(crate) fn observe(&self) -> Observed {
        let cr = self.cr();
        let records = self.objects.keys().map(|key| ObservedChild {
            key: key.clone(),
            record: Arc::new(self.record_of(key)),
        });
        let records: Vec<_> = records.collect();
        let owner = OwnerMark {
            kind: self.plan.resource.group_kind(),
            key: cr.id.key.clone(),
            uid: cr.id.uid.clone(),
        };
        let is_orphan = |child: &&ObservedChild| child.record.is_of_predecessor(&owner, MANAGER);
        Observed {
            inventory: cr.inventory.clone(),
            orphans: records.iter().filter(is_orphan).cloned().collect(),
            children: records
                .into_iter()
                .filter(|child| child.record.owner() == Some(&cr.id.uid))
                .collect(),
            cr,
            unseen: self.unseen.clone(),
            reported: self.reported,
            answers: Answers::new(),
        }
    }

    pub(crate) fn decide(&self) -> Cycle {
        self.decide_on(&self.observe())
    }

    /// Uses a new seed once objects have been created, as in a cluster: values that were drawn must not be drawn again.
    pub(crate) fn decide_on(&self, observed: &Observed) -> Cycle {
        let entropy = Entropy::seeded([u8::try_from(self.made % 256).unwrap(); 32]);
        let mut observed = observed.clone();
        for _ in 0..ROUNDS {
            let reads = match step(&self.plan, &self.scopes, &observed, self.now, &entropy) {
                StepResult::Done(cycle) => return *cycle,
                StepResult::Need(reads) => reads,
            };
            for read in reads {
                let answer = match (self.outside.get(&read), &read) {
                    (Some(answer), _) => answer.clone(),
                    (None, Read::Certificate(wanted)) => certificate(wanted),
                    (None, _) => Answer::Absent,
                };
                assert_eq!(observed.answers.insert(read, answer), None, "read twice");
            }
        }
        panic!("a pass does not stop to request reads");
    }

    /// Decides and writes. The inventory is written first.
    pub(crate) fn pass(&mut self) -> Pass {
        let cycle = self.decide();
        self.execute(cycle, usize::MAX)
    }

    /// Writes the intents of a cycle, the inventory first. Stops after `writes` writes of children, as if the process had been
    /// killed. The decisions may be outdated: a name may be taken, or the object may have been replaced.
    pub(crate) fn execute(&mut self, cycle: Cycle, writes: usize) -> Pass {
        let mut pass = Pass {
            cycle,
            ..Pass::default()
        };
        let mut inventory = pass.cycle.inventory.clone();
        self.remember(&inventory.text());
        for intent in pass.cycle.intents.clone() {
            if pass.written.len() >= writes {
                return pass;
            }
            match intent {
                Intent::Apply(rendered) => self.apply(&rendered, &mut pass),
                Intent::Create(rendered) => {
                    let stays_gone = self.plan.children[rendered.declared].stays_gone();
                    if !self.objects.contains_key(&rendered.key) {
                        let once = [Operation::Apply, Operation::Update];
                        self.make(&rendered, once[usize::from(stays_gone)]);
                        pass.written.push(rendered.key.clone());
                    }
                    if stays_gone {
                        inventory.made.insert(rendered.key);
                    }
                }
                Intent::Keep(_) | Intent::Unlink(_) => {}
                Intent::Delete(deletion) => {
                    let found = self.objects.get(&deletion.key).map(Stored::object);
                    if found
                        .is_some_and(|found| found["metadata"]["uid"] == *deletion.uid.to_string())
                    {
                        self.objects.remove(&deletion.key);
                        pass.written.push(deletion.key);
                    }
                }
            }
        }
        if pass.written.len() < writes {
            self.remember(&inventory.text());
        }
        pass
    }

    /// Sets the inventory of the custom resource.
    pub(crate) fn remember(&mut self, inventory: &str) {
        self.cr["metadata"]["annotations"]["orkestra.orkspace.io/inventory"] = inventory.into();
    }

    /// Runs passes until one writes nothing; at most two may write.
    pub(crate) fn settle(&mut self) -> Pass {
        for _ in 0..3 {
            let pass = self.pass();
            if pass.written.is_empty() {
                return pass;
            }
        }
        panic!("passes do not stop to write");
    }

    fn make(&mut self, rendered: &Rendered, operation: Operation) {
        self.made += 1;
        let uid = format!("child-{}", self.made);
        let stored = Stored::made(&rendered.object.to_json(), &uid, MANAGER, operation);
        let before = self
            .objects
            .insert(rendered.key.clone(), stored.born(self.made));
        assert!(before.is_none(), "{} exists", rendered.key);
    }

    /// Writes a child like the executor: no write, an apply that may be refused, or a forced apply without the fields of other
    /// managers.
    fn apply(&mut self, rendered: &Rendered, pass: &mut Pass) {
        if !self.objects.contains_key(&rendered.key) {
            self.make(rendered, Operation::Apply);
            pass.written.push(rendered.key.clone());
            return;
        }
        let mut found = self.difference(rendered, &[]);
        if found.needs_write() {
            let before = self.objects[&rendered.key].version();
            if let Err(trails) = self.send(rendered, &found, !found.changed) {
                let refused: Vec<String> = trails.iter().map(refusal).collect();
                found = self.difference(rendered, &refused);
                self.send(rendered, &found, true).unwrap();
            }
            // The executor remembers a write without an effect and does not repeat it.
            if self.objects[&rendered.key].version() != before {
                pass.written.push(rendered.key.clone());
            }
        }
        let held = found.held.into_iter();
        pass.held
            .extend(held.map(|held| (rendered.key.clone(), held)));
    }

    /// Applies the rendered object without the fields that other managers own.
    fn send(
        &mut self,
        rendered: &Rendered,
        found: &Difference,
        force: bool,
    ) -> Result<(), BTreeSet<Trail>> {
        let held: Vec<Path> = found.held.iter().map(|held| held.path.clone()).collect();
        let body = without(&rendered.object, &held).to_json();
        let stored = self.objects.get_mut(&rendered.key).unwrap();
        stored.apply(&body, MANAGER, force)
    }

    /// Returns the difference between a rendered child and the existing one, for which the API server has refused these fields.
    pub(crate) fn difference(&self, rendered: &Rendered, refused: &[String]) -> Difference {
        let wanted = rendered.wanted(&self.plan.children[rendered.declared]);
        difference(&wanted, &self.record_of(&rendered.key), MANAGER, refused)
    }

    /// Returns the child with this kind and name in the custom resource's namespace.
    pub(crate) fn stored(&mut self, kind: &str, name: &str) -> &mut Stored {
        self.objects.get_mut(&key(kind, name)).unwrap()
    }
}

/// Returns a certificate whose text names its hosts.
fn certificate(wanted: &Certificate) -> Answer {
    let hosts = wanted.hosts.join(",");
    let text = format!("{hosts} until {}", wanted.not_after);
    let part = |name: &'static str| (name, Node::from(format!("{name} for {text}")));
    Answer::Ready(Arc::new(Node::object(CERTIFICATE_PARTS.map(part))))
}

/// Returns the scopes of a plan's kinds. Kinds of unknown scope count as namespaced.
pub(crate) fn scopes(plan: &OperatorPlan) -> BTreeMap<GroupKind, bool> {
    plan.kinds()
        .map(|kind| (kind.group_kind(), kind.namespaced.unwrap_or(true)))
        .collect()
}

/// Returns the key of a child in the custom resource's namespace.
pub(crate) fn key(kind: &str, name: &str) -> ChildKey {
    key_in(Some(super::operator::NAMESPACE), kind, name)
}

/// Returns the key of a child.
pub(crate) fn key_in(namespace: Option<&str>, kind: &str, name: &str) -> ChildKey {
    ChildKey {
        kind: GroupKind::parse(kind),
        object: orkestra_plan::ObjectKey {
            namespace: namespace.map(Into::into),
            name: name.into(),
        },
    }
}

/// Returns the intents as words: `apply ConfigMap east/a`.
pub(crate) fn words(cycle: &Cycle) -> Vec<String> {
    let word = |intent: &Intent| match intent {
        Intent::Apply(rendered) => format!("apply {}", rendered.key),
        Intent::Create(rendered) => format!("create {}", rendered.key),
        Intent::Keep(key) => format!("keep {key}"),
        Intent::Unlink(key) => format!("unlink {key}"),
        Intent::Delete(deletion) => format!("delete {}", deletion.key),
    };
    cycle.intents.iter().map(word).collect()
}

/// Returns the rendered object of the intent for `key`.
pub(crate) fn rendered<'a>(cycle: &'a Cycle, key: &ChildKey) -> &'a Rendered {
    let found = cycle.intents.iter().find_map(|intent| match intent {
        Intent::Apply(rendered) | Intent::Create(rendered) if rendered.key == *key => {
            Some(&**rendered)
        }
        _ => None,
    });
    found.unwrap_or_else(|| {
        panic!(
            "{key} is not rendered: {:?}, {:?}",
            words(cycle),
            cycle.failures
        )
    })
}
