//! An index of the custom resources of an operator by the text at each path that `unique` checks.

use std::collections::{BTreeSet, HashMap};

use orkestra_core::{
    plan::ObjectKey,
    reconcile::{sources::Answer, unique::unique_text},
    value::{Node, Path},
};
use parking_lot::Mutex;

use super::bound_plan::BoundPlan;

/// A path, and its text.
type UniqueValue = (Path, Box<str>);

/// The index of one operator. Empty if its plan has no `unique`.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Uniques(Mutex<Index>);

#[derive(Debug, Default)]
struct Index {
    holders: HashMap<UniqueValue, BTreeSet<ObjectKey>>,
    places: HashMap<ObjectKey, Vec<UniqueValue>>,
}

impl Uniques {
    /// Updates the index from the store's record of a custom resource, and returns the others whose result changed with it.
    pub(in crate::runtime) fn refresh(&self, bound: &BoundPlan, key: &ObjectKey) -> Vec<ObjectKey> {
        if bound.plan.reads.unique.is_empty() {
            return Vec::new();
        }
        // The store is read under the lock: the last caller has the newest record.
        let mut index = self.0.lock();
        let record = bound.crs.store().get(key);
        let places = record.map(|record| {
            let text = |path: &Path| Some((path.clone(), unique_text(&record.view, path)?));
            let paths = bound.plan.reads.unique.iter();
            paths.filter_map(text).collect()
        });
        index.put(key, places.unwrap_or_default())
    }

    /// Rebuilds the index from the store.
    pub(in crate::runtime) fn rebuild(&self, bound: &BoundPlan) {
        *self.0.lock() = Index::default();
        for key in bound.crs.store().keys() {
            self.refresh(bound, &key);
        }
    }

    /// Returns a custom resource other than `key` that has that text at the path.
    pub(in crate::runtime) fn answer(&self, key: &ObjectKey, path: &Path, text: &str) -> Answer {
        let index = self.0.lock();
        let holders = index.holders.get(&(path.clone(), text.into()));
        match holders.and_then(|holders| holders.iter().find(|other| *other != key)) {
            Some(other) => Answer::Ready(Node::from(other.to_string()).into()),
            None => Answer::Absent,
        }
    }
}

impl Index {
    fn put(&mut self, key: &ObjectKey, places: Vec<UniqueValue>) -> Vec<ObjectKey> {
        let before = self.places.remove(key).unwrap_or_default();
        let mut touched = BTreeSet::new();
        for place in before.iter().filter(|place| !places.contains(place)) {
            if let Some(holders) = self.holders.get_mut(place) {
                holders.remove(key);
                touched.extend(holders.iter().cloned());
                if holders.is_empty() {
                    self.holders.remove(place);
                }
            }
        }
        for place in places.iter().filter(|place| !before.contains(place)) {
            let holders = self.holders.entry(place.clone()).or_default();
            touched.extend(holders.iter().cloned());
            holders.insert(key.clone());
        }
        if !places.is_empty() {
            self.places.insert(key.clone(), places);
        }
        touched.remove(key);
        touched.into_iter().collect()
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

    fn place(text: &str) -> UniqueValue {
        (Path::parse("spec.host").unwrap(), text.into())
    }

    #[test]
    fn who_has_the_text_that_another_takes_or_leaves_is_notified() {
        let mut index = Index::default();
        assert_eq!(index.put(&key("a"), vec![place("x")]), []);
        assert_eq!(index.put(&key("b"), vec![place("y")]), []);
        assert_eq!(index.put(&key("b"), vec![place("x")]), [key("a")]);
        assert_eq!(index.put(&key("b"), vec![place("x")]), []);
        assert_eq!(index.put(&key("c"), vec![place("x")]), [key("a"), key("b")]);
        assert_eq!(index.put(&key("a"), Vec::new()), [key("b"), key("c")]);
        assert_eq!(index.put(&key("b"), vec![place("y")]), [key("c")]);
        let uniques = Uniques(index.into());
        let path = place("").0;
        assert_eq!(uniques.answer(&key("c"), &path, "x"), Answer::Absent);
        assert!(matches!(
            uniques.answer(&key("a"), &path, "x"),
            Answer::Ready(_)
        ));
        uniques.0.lock().put(&key("c"), Vec::new());
        assert_eq!(uniques.answer(&key("a"), &path, "x"), Answer::Absent);
    }
}
