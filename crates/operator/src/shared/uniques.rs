//! An index of the custom resources of an operator by the text at each path that `unique` checks: who held it first.
//!
//! ```text
//!  listed ── those whose inventory records the text, then by creation and uid ──┐
//!  later  ── in the order of the events ────────────────────────────────────────┴─► holders, first to last
//!  the first one leaves ──► the next one is queued
//! ```

use std::collections::{BTreeSet, HashMap};

use orkestra_engine::reconcile::{
    record::{CrRecord, Uid},
    sources::Answer,
    unique::{unique_record, unique_text},
};
use orkestra_object::value::{Node, Path};
use orkestra_plan::ObjectKey;
use parking_lot::Mutex;

use super::bound_plan::BoundPlan;

/// A path, and its text.
type UniqueValue = (Path, Box<str>);

/// The index of one operator. Empty if its plan has no `unique`.
#[derive(Debug, Default)]
pub(crate) struct Uniques(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    holders: HashMap<UniqueValue, BTreeSet<Holder>>,
    places: HashMap<ObjectKey, Vec<(UniqueValue, Holder)>>,
    /// The number of values that were taken since the list.
    taken: u64,
}

/// A custom resource with a text, in the order in which they took it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Holder {
    /// 0 if it had the text when all were listed.
    turn: u64,
    /// False if its inventory records the text.
    unrecorded: bool,
    created: Option<jiff::Timestamp>,
    uid: Uid,
    key: ObjectKey,
}

impl Uniques {
    /// Updates the index from the store's record of a custom resource, and returns the other one whose result changed with it.
    pub(crate) fn refresh(&self, bound: &BoundPlan, key: &ObjectKey) -> Vec<ObjectKey> {
        if bound.plan.reads.unique.is_empty() {
            return Vec::new();
        }
        // The store is read under the lock: the last caller has the newest record.
        let mut index = self.0.lock();
        let record = bound.crs.store().get(key);
        index.taken += 1;
        let turn = index.taken;
        let places = record.map(|record| places(&bound.plan.reads.unique, &record, turn));
        index.put(key, places.unwrap_or_default())
    }

    /// Rebuilds the index from the store.
    pub(crate) fn rebuild(&self, bound: &BoundPlan) {
        let mut index = self.0.lock();
        *index = Index::default();
        let paths = &bound.plan.reads.unique;
        if paths.is_empty() {
            return;
        }
        for record in bound.crs.store().snapshot() {
            index.put(&record.id.key, places(paths, &record, 0));
        }
    }

    /// Returns the custom resource that had that text at the path first, unless that is `key`.
    pub(crate) fn answer(&self, key: &ObjectKey, path: &Path, text: &str) -> Answer {
        let index = self.0.lock();
        let holders = index.holders.get(&(path.clone(), text.into()));
        match holders.and_then(BTreeSet::first) {
            Some(first) if first.key != *key => {
                Answer::Ready(Node::from(first.key.to_string()).into())
            }
            _ => Answer::Absent,
        }
    }
}

/// Returns the texts of a custom resource, and its place among their holders.
fn places(paths: &[Path], record: &CrRecord, turn: u64) -> Vec<(UniqueValue, Holder)> {
    let place = |path: &Path| {
        let text = unique_text(&record.view, path)?;
        let holder = Holder {
            turn,
            unrecorded: !record.inventory.held.contains(&unique_record(path, &text)),
            created: record.created(),
            uid: record.id.uid.clone(),
            key: record.id.key.clone(),
        };
        Some(((path.clone(), text), holder))
    };
    paths.iter().filter_map(place).collect()
}

impl Index {
    /// Sets the texts of a custom resource. One that it has already keeps its place, unless the resource was created again.
    /// Returns those that are now first.
    fn put(&mut self, key: &ObjectKey, places: Vec<(UniqueValue, Holder)>) -> Vec<ObjectKey> {
        let before = self.places.remove(key).unwrap_or_default();
        let is_kept = |(value, holder): &(UniqueValue, Holder)| {
            let mut places = places.iter();
            places.any(|(now, other)| now == value && other.uid == holder.uid)
        };
        let (mut kept, left): (Vec<_>, Vec<_>) = before.into_iter().partition(is_kept);
        let mut first = BTreeSet::new();
        for (value, holder) in left {
            let Some(holders) = self.holders.get_mut(&value) else {
                continue;
            };
            let was_first = holders.first() == Some(&holder);
            holders.remove(&holder);
            match holders.first() {
                Some(next) if was_first => drop(first.insert(next.key.clone())),
                Some(_) => {}
                None => drop(self.holders.remove(&value)),
            }
        }
        for (value, holder) in places {
            if kept.iter().any(|(known, _)| *known == value) {
                continue;
            }
            let holders = self.holders.entry(value.clone()).or_default();
            holders.insert(holder.clone());
            kept.push((value, holder));
        }
        if !kept.is_empty() {
            self.places.insert(key.clone(), kept);
        }
        first.remove(key);
        first.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: None,
            name: name.into(),
        }
    }

    fn value(text: &str) -> UniqueValue {
        (Path::parse("spec.host").unwrap(), text.into())
    }

    /// Returns the text of a custom resource whose uid is its name.
    fn place(name: &str, text: &str, turn: u64) -> Vec<(UniqueValue, Holder)> {
        let holder = Holder {
            turn,
            unrecorded: true,
            created: None,
            uid: name.into(),
            key: key(name),
        };
        vec![(value(text), holder)]
    }

    fn first(uniques: &Uniques, of: &str, text: &str) -> bool {
        uniques.answer(&key(of), &value("").0, text) == Answer::Absent
    }

    #[test]
    fn the_first_holder_keeps_a_text_and_the_next_one_is_queued_when_it_leaves() {
        let mut index = Index::default();
        assert_eq!(index.put(&key("b"), place("b", "x", 1)), []);
        assert_eq!(index.put(&key("a"), place("a", "x", 2)), []);
        assert_eq!(index.put(&key("c"), place("c", "x", 3)), []);
        // Another event does not change the order.
        assert_eq!(index.put(&key("b"), place("b", "x", 4)), []);
        let uniques = Uniques(index.into());
        assert!(first(&uniques, "b", "x") && !first(&uniques, "a", "x"));
        let put = |name: &str, places| uniques.0.lock().put(&key(name), places);
        assert_eq!(put("c", place("c", "y", 5)), []);
        assert_eq!(put("c", place("c", "x", 6)), []);
        assert_eq!(put("b", place("b", "y", 7)), [key("a")]);
        assert!(first(&uniques, "a", "x") && first(&uniques, "b", "y"));
        // It comes back as the last one.
        assert_eq!(put("b", place("b", "x", 8)), []);
        assert_eq!(put("a", Vec::new()), [key("c")]);
        assert_eq!(put("c", Vec::new()), [key("b")]);
        assert_eq!(put("b", Vec::new()), []);
        assert!(first(&uniques, "d", "x"));
        let index = uniques.0.lock();
        assert!(index.holders.is_empty() && index.places.is_empty());
    }

    #[test]
    fn a_resource_that_was_created_again_is_a_newcomer() {
        let mut index = Index::default();
        index.put(&key("a"), place("a", "x", 1));
        index.put(&key("b"), place("b", "x", 2));
        assert_eq!(index.put(&key("a"), place("again", "x", 3)), [key("b")]);
    }

    #[test]
    fn of_those_that_are_listed_the_recorded_one_is_first_and_then_the_oldest() {
        let mut index = Index::default();
        let listed = |name: &str, unrecorded, second| {
            let mut places = place(name, "x", 0);
            places[0].1.unrecorded = unrecorded;
            places[0].1.created = jiff::Timestamp::from_second(second).ok();
            places
        };
        index.put(&key("old"), listed("old", true, 1));
        index.put(&key("older"), listed("older", true, 0));
        index.put(&key("holder"), listed("holder", false, 9));
        let order: Vec<ObjectKey> = index.holders[&value("x")]
            .iter()
            .map(|holder| holder.key.clone())
            .collect();
        assert_eq!(order, [key("holder"), key("older"), key("old")]);
    }
}
