//! The custom resources of an operator: their uids, and what it remembers about each between passes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use orkestra_engine::reconcile::{
    hold_reason::HoldReason,
    reason::Reason,
    record::{CrRecord, Uid},
    standing::Standing,
    status::reported_ready,
};
use orkestra_language::{
    api::{OperatorStatus as Row, conditions},
    reasons::FailureScope,
};
use orkestra_object::value::Key;
use orkestra_plan::ObjectKey;
use parking_lot::Mutex;

use super::{
    inherited::InheritedFailures,
    memory::{Memory, PassMemory},
};
use crate::status::rollout::{NAMED, Rollout};

/// How many failures are kept as examples.
const EXAMPLES: usize = 3;
/// The bytes of an example.
const EXAMPLE_BYTES: usize = 512;

/// The custom resources of one operator.
#[derive(Debug, Default)]
pub(crate) struct OperatorInstances {
    memories: Mutex<HashMap<ObjectKey, PassMemory>>,
    known: Mutex<Known>,
    /// The failures of some that the revision in force broke.
    examples: Mutex<BTreeMap<ObjectKey, String>>,
    /// Whether what the predecessor knew is taken over.
    inherited: Mutex<bool>,
}

/// Counts of custom resources.
#[derive(Debug, Default)]
pub(crate) struct InstanceCounts {
    /// Those that are ready.
    pub(crate) ready: usize,
    /// Those that `reconcileGate` holds back.
    pub(crate) gated: usize,
    /// Those whose last pass did not leave them ready, by reason.
    pub(crate) not_ready: BTreeMap<Reason, usize>,
    /// How those stand that a revision has made ready.
    pub(crate) rollout: Rollout,
}

#[derive(Debug, Default)]
struct Known {
    /// The key of each custom resource by uid, to find a child's owner.
    uids: HashMap<Uid, ObjectKey>,
    /// How many custom resources each namespace has, so that no pass counts them.
    namespaces: BTreeMap<Option<Key>, usize>,
}

impl OperatorInstances {
    /// Takes the memory of a custom resource for a pass: the queue allows no two passes over one key. The part that stays
    /// says whether it is ready, which does not change while a pass only reads.
    pub(crate) fn take_memory(&self, key: &ObjectKey) -> Memory {
        let mut memories = self.memories.lock();
        memories
            .get_mut(key)
            .map(PassMemory::take)
            .unwrap_or_default()
    }

    /// Keeps the memory of a pass. If the plan of the pass is no longer in force, nothing follows for the one that is.
    pub(crate) fn put_memory(
        &self,
        key: &ObjectKey,
        memory: Memory,
        is_current: impl FnOnce() -> bool,
    ) {
        let mut kept = PassMemory::from(memory);
        let mut memories = self.memories.lock();
        // Under the lock: a plan that takes over afterwards resets this memory too.
        if !is_current() {
            kept.under_another();
        }
        memories.insert(key.clone(), kept);
    }

    /// Resets readiness when another plan is in force: custom resources count as ready again after a pass under it.
    pub(crate) fn forget_readiness(&self) {
        for memory in self.memories.lock().values_mut() {
            memory.under_another();
        }
        self.examples.lock().clear();
    }

    /// Drops how custom resources stand, since another process works from now on.
    pub(crate) fn forget_standings(&self) {
        for memory in self.memories.lock().values_mut() {
            memory.standing = Standing::default();
        }
        self.examples.lock().clear();
        *self.inherited.lock() = false;
    }

    /// Takes over, once, how custom resources stand from the status of the Katalog as the predecessor wrote it, and from
    /// their own. `revision` is the one in force now; `has_status` says whether their status is a subresource, which their
    /// authors do not write.
    pub(crate) fn inherit<'a>(
        &self,
        records: impl IntoIterator<Item = &'a CrRecord>,
        row: Option<&Row>,
        (revision, has_status): (&str, bool),
    ) {
        if std::mem::replace(&mut *self.inherited.lock(), true) {
            return;
        }
        let Some(row) = row else { return };
        // The predecessor has not seen all of them under this revision.
        let is_other = row.revision.as_deref() != Some(revision) || row.state == "Updating";
        let mut failing = row.failing.as_ref().map(InheritedFailures::of);
        let mut memories = self.memories.lock();
        for record in records.into_iter().filter(|record| !record.deleting) {
            let at = Some(record.generation).filter(|at| has_status && *at > 0);
            let reported = reported_ready(record);
            let is_ready = reported == Some((true, at)) && has_status;
            let reason = failing.as_mut().and_then(|failing| {
                failing.take(&record.id.key, reported.is_none_or(|(ready, _)| !ready))
            });
            let standing = match (reason, is_ready) {
                (None, false) => continue,
                (_, _) if is_other => Standing::Earlier { at, seen: false },
                (Some(reason), _) => Standing::Broken { at, reason },
                (None, true) => Standing::Ready(at),
            };
            let memory = memories.entry(record.id.key.clone()).or_default();
            if memory.standing == Standing::default() && memory.reason.is_none() {
                memory.standing = standing;
            }
        }
    }

    /// Notes the failure of a custom resource that the revision in force broke; none if it did not.
    pub(crate) fn note_failure(&self, key: &ObjectKey, why: Option<String>) {
        let mut examples = self.examples.lock();
        match why {
            None => drop(examples.remove(key)),
            Some(why) if examples.len() < EXAMPLES || examples.contains_key(key) => {
                let why = conditions::cut(&format!("{key}: {why}"), EXAMPLE_BYTES);
                examples.insert(key.clone(), why);
            }
            Some(_) => {}
        }
    }

    /// Counts custom resources by how they stand; `limit` is `queue.failingPercent`.
    pub(crate) fn counts(&self, limit: u32) -> InstanceCounts {
        let namespaces = self.namespace_count();
        let mut counts = InstanceCounts::default();
        let mut broken = Vec::new();
        let memories = self.memories.lock();
        for (key, memory) in &*memories {
            counts.ready += usize::from(memory.ready);
            counts.gated += usize::from(memory.held_back == Some(HoldReason::Gated));
            if let Some(reason) = memory.reason.filter(|_| !memory.ready) {
                *counts.not_ready.entry(reason).or_default() += 1;
            }
            counts.rollout.proven += usize::from(memory.standing.is_proven());
            counts.rollout.pending += usize::from(memory.standing.is_pending());
            broken.extend(memory.standing.broken().map(|reason| (key, reason)));
        }
        let local = |(_, reason): &&(&ObjectKey, Reason)| reason.scope() == FailureScope::Namespace;
        let places: BTreeSet<_> = (broken.iter().filter(local))
            .map(|(key, _)| &key.namespace)
            .collect();
        // The quota, or a policy, of one of several namespaces is its owner's.
        let is_local = namespaces > 1 && places.len() == 1;
        broken.retain(|one| !(is_local && local(&one)));
        broken.sort_unstable();
        for (_, reason) in &broken {
            *counts.rollout.broken.entry(*reason).or_default() += 1;
        }
        let named = broken.iter().take(NAMED);
        counts.rollout.named = named.map(|(key, _)| (*key).clone()).collect();
        counts.rollout.example = self.examples.lock().values().next().cloned();
        counts.rollout.limit = limit;
        counts
    }

    /// Returns the key of the custom resource of that uid.
    pub(crate) fn owner(&self, uid: &Uid) -> Option<ObjectKey> {
        self.known.lock().uids.get(uid).cloned()
    }

    /// Adds a new custom resource.
    pub(crate) fn add(&self, uid: &Uid, key: &ObjectKey) {
        let mut known = self.known.lock();
        if known.uids.insert(uid.clone(), key.clone()).is_none() {
            *known.namespaces.entry(key.namespace.clone()).or_default() += 1;
        }
    }

    /// Removes a deleted custom resource.
    pub(crate) fn remove(&self, uid: &Uid, key: &ObjectKey) {
        self.known.lock().remove(uid);
        self.memories.lock().remove(key);
        self.examples.lock().remove(key);
    }

    /// Returns how many custom resources there are.
    pub(crate) fn count(&self) -> usize {
        self.known.lock().uids.len()
    }

    /// Returns how many namespaces have custom resources; cluster-scoped ones count as one.
    pub(crate) fn namespace_count(&self) -> usize {
        self.known.lock().namespaces.len()
    }

    /// Removes all custom resources and returns their keys; what passes remembered stays until [`OperatorInstances::forget_all`].
    pub(crate) fn drain(&self) -> Vec<ObjectKey> {
        let known = std::mem::take(&mut *self.known.lock());
        known.uids.into_values().collect()
    }

    /// Drops what passes remembered.
    pub(crate) fn forget_all(&self) {
        self.memories.lock().clear();
        self.examples.lock().clear();
        *self.inherited.lock() = false;
    }
}

impl Known {
    fn remove(&mut self, uid: &Uid) {
        let Some(key) = self.uids.remove(uid) else {
            return;
        };
        if let Some(count) = self.namespaces.get_mut(&key.namespace) {
            *count -= 1;
            if *count == 0 {
                self.namespaces.remove(&key.namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use orkestra_engine::reconcile::standing::PassEnd;
    use orkestra_language::api::FailingInstances;
    use orkestra_object::value::Node;

    use super::*;

    const FAILS: PassEnd = PassEnd::Failed(Reason::Invalid);
    const SAME: [Option<i64>; 2] = [Some(1), Some(1)];

    fn key(namespace: &str, name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Some(namespace.into()),
            name: name.into(),
        }
    }

    /// Ends a pass over the custom resource.
    fn pass(instances: &OperatorInstances, key: &ObjectKey, end: PassEnd, is_current: bool) {
        let mut memory = instances.take_memory(key);
        memory.standing = memory.standing.after(end, SAME);
        instances.put_memory(key, memory, || is_current);
    }

    fn broken(instances: &OperatorInstances) -> usize {
        instances.counts(10).rollout.broken()
    }

    #[test]
    fn a_pass_that_began_under_the_last_revision_says_nothing_about_this_one() {
        let (instances, one) = (OperatorInstances::default(), key("east", "a"));
        pass(&instances, &one, PassEnd::Ready, true);
        instances.forget_readiness();
        // It was still running under the earlier plan.
        pass(&instances, &one, PassEnd::Ready, false);
        assert_eq!(instances.counts(10).rollout.pending, 1);
        pass(&instances, &one, FAILS, true);
        assert_eq!(
            (broken(&instances), instances.counts(10).rollout.pending),
            (1, 0)
        );
    }

    #[test]
    fn refusals_in_one_of_several_namespaces_do_not_count() {
        let instances = OperatorInstances::default();
        let all = ["east", "west"].map(|namespace| key(namespace, "a"));
        for key in &all {
            instances.add(&Uid::from(&*key.to_string()), key);
            pass(&instances, key, PassEnd::Ready, true);
        }
        instances.forget_readiness();
        let denied = PassEnd::Failed(Reason::Denied);
        pass(&instances, &all[0], denied, true);
        assert_eq!(broken(&instances), 0);
        pass(&instances, &all[1], denied, true);
        assert_eq!(broken(&instances), 2);
    }

    fn record(name: &str, ready: Option<&str>) -> CrRecord {
        let mut object = json!({
            "metadata": { "name": name, "namespace": "east", "uid": name, "resourceVersion": "1", "generation": 1 },
        });
        if let Some(status) = ready {
            object["status"] = json!({ "observedGeneration": 1, "conditions": [
                { "type": "Ready", "status": status, "observedGeneration": 1 },
            ] });
        }
        let paths = [orkestra_object::value::Path::parse("status").unwrap()];
        CrRecord::read(&Node::from(&object), &paths).unwrap()
    }

    /// Returns how many are broken, ready under an earlier revision, and ready, after a restart over that row.
    fn inherited(row: &Row, revision: &str, records: &[CrRecord]) -> [usize; 3] {
        let instances = OperatorInstances::default();
        instances.inherit(records, Some(row), (revision, true));
        let rollout = instances.counts(10).rollout;
        let rest = rollout.proven - rollout.broken() - rollout.pending;
        [rollout.broken(), rollout.pending, rest]
    }

    #[test]
    fn what_a_revision_broke_is_known_after_a_restart_and_broken_newcomers_do_not_count() {
        let failing = |count, names: &[&str]| {
            let names = names.iter().map(|name| format!("east/{name}")).collect();
            Some(FailingInstances {
                count,
                of: 9,
                reason: "Invalid".to_owned(),
                names,
            })
        };
        let row = |failing| Row {
            revision: Some("r-2".to_owned()),
            state: "Running".to_owned(),
            failing,
            ..Row::default()
        };
        let records = [
            record("a", Some("False")),
            record("b", Some("False")),
            record("c", Some("True")),
            record("new", None),
        ];
        let named = row(failing(1, &["a"]));
        assert_eq!(inherited(&named, "r-2", &records), [1, 0, 1]);
        // Under a newer revision all of them have to be seen.
        assert_eq!(inherited(&named, "r-3", &records), [0, 2, 0]);
        // More than are named: as many as there were, of those that are not ready.
        let unnamed = row(failing(2, &[]));
        assert_eq!(inherited(&unnamed, "r-2", &records), [2, 0, 1]);
        assert_eq!(inherited(&row(None), "r-2", &records), [0, 0, 1]);
    }

    #[test]
    fn namespaces_are_counted_while_they_have_custom_resources() {
        let instances = OperatorInstances::default();
        let one = |uid: &str, namespace: &str| {
            let key = ObjectKey {
                namespace: Some(namespace.into()),
                name: uid.into(),
            };
            (Uid::from(uid), key)
        };
        let all = [one("a", "east"), one("b", "east"), one("c", "west")];
        for (uid, key) in all.iter().chain(&all) {
            instances.add(uid, key);
        }
        assert_eq!((instances.count(), instances.namespace_count()), (3, 2));
        let counts = all.each_ref().map(|(uid, key)| {
            instances.remove(uid, key);
            instances.remove(uid, key);
            instances.namespace_count()
        });
        assert_eq!(counts, [2, 1, 0]);
        instances.add(&all[0].0, &all[0].1);
        instances.drain();
        assert_eq!((instances.count(), instances.namespace_count()), (0, 0));
    }
}
