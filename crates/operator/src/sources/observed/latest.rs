//! An index of Events by custom resource.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use orkestra_engine::reconcile::{
    observe::{Lead, ObservedRecord, about_uid},
    record::Uid,
};
use orkestra_plan::ObjectKey;
use parking_lot::Mutex;

/// The Events of one entry, by their leads.
#[derive(Default)]
pub(crate) struct Latest(Mutex<Index>);

#[derive(Default)]
struct Index {
    leads: HashMap<ObjectKey, Lead>,
    events: HashMap<Lead, HashSet<ObjectKey>>,
}

impl Latest {
    /// Records the current lead of the Event of that key. `lead` reads the store under the lock, so the last caller has seen
    /// the newest state.
    pub(crate) fn refresh(&self, key: &ObjectKey, lead: impl FnOnce() -> Option<Lead>) {
        let mut index = self.0.lock();
        let lead = lead();
        if index.leads.get(key) == lead.as_ref() {
            return;
        }
        if let Some(before) = index.leads.remove(key)
            && let Some(events) = index.events.get_mut(&before)
        {
            events.remove(key);
            if events.is_empty() {
                index.events.remove(&before);
            }
        }
        if let Some(lead) = lead {
            index.leads.insert(key.clone(), lead.clone());
            index.events.entry(lead).or_default().insert(key.clone());
        }
    }

    /// Returns all Events with one of `leads`.
    pub(crate) fn all(&self, leads: &[(Lead, Option<Uid>)]) -> Vec<ObjectKey> {
        let index = self.0.lock();
        let found = leads.iter().filter_map(|(lead, _)| index.events.get(lead));
        found.flatten().cloned().collect()
    }

    /// Returns the most recently written Event with one of `leads`. If a uid is given, Events about another object of the
    /// same name are skipped.
    pub(crate) fn of(
        &self,
        leads: &[(Lead, Option<Uid>)],
        get: impl Fn(&ObjectKey) -> Option<Arc<ObservedRecord>>,
    ) -> Option<Arc<ObservedRecord>> {
        let index = self.0.lock();
        let mut latest: Option<Arc<ObservedRecord>> = None;
        for (lead, uid) in leads {
            let events = index.events.get(lead).into_iter().flatten();
            for seen in events.filter_map(&get) {
                let about = about_uid(&seen.view);
                let is_meant = match (uid, about) {
                    (Some(uid), Some(about)) => *uid == *about,
                    _ => true,
                };
                let version = &seen.id.resource_version;
                let is_later = |latest: &Arc<ObservedRecord>| {
                    version.is_newer_than(&latest.id.resource_version)
                };
                if is_meant && latest.as_ref().is_none_or(is_later) {
                    latest = Some(seen);
                }
            }
        }
        latest
    }
}

#[cfg(test)]
mod tests {
    use orkestra_object::value::Node;
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey {
            namespace: Some("east".into()),
            name: name.into(),
        }
    }

    fn event(name: &str, version: &str, uid: &str) -> Arc<ObservedRecord> {
        let object = json!({
            "metadata": { "name": name, "namespace": "east", "uid": name, "resourceVersion": version },
            "regarding": { "uid": uid },
        });
        let all = [orkestra_object::value::Path::root()];
        Arc::new(ObservedRecord::read(&Node::from(&object), &all).unwrap())
    }

    fn of(name: &str) -> Lead {
        Lead::Name(Some("east".into()), name.into())
    }

    fn latest(
        index: &Latest,
        events: &[Arc<ObservedRecord>],
        leads: &[(Lead, Option<Uid>)],
    ) -> String {
        let get = |key: &ObjectKey| events.iter().find(|seen| seen.id.key == *key).cloned();
        let found = index.of(leads, get);
        found.map_or_else(String::new, |seen| seen.id.key.name.to_string())
    }

    #[test]
    fn the_event_that_was_written_last_counts_and_one_of_a_former_object_does_not() {
        let events = [
            event("a", "9", "1"),
            event("b", "10", "1"),
            event("c", "11", "2"),
        ];
        let index = Latest::default();
        for seen in &events {
            index.refresh(&seen.id.key, || Some(of("pond")));
        }
        assert_eq!(latest(&index, &events, &[(of("pond"), None)]), "c");
        assert_eq!(
            latest(&index, &events, &[(of("pond"), Some("1".into()))]),
            "b"
        );
        assert_eq!(latest(&index, &events, &[(of("lake"), None)]), "");
    }

    #[test]
    fn an_event_that_leads_elsewhere_or_is_gone_leaves_nothing_behind() {
        let events = [event("a", "9", "1")];
        let index = Latest::default();
        index.refresh(&key("a"), || Some(of("pond")));
        index.refresh(&key("a"), || Some(of("lake")));
        assert_eq!(latest(&index, &events, &[(of("pond"), None)]), "");
        assert_eq!(latest(&index, &events, &[(of("lake"), None)]), "a");
        index.refresh(&key("a"), || None);
        let left = index.0.lock();
        assert!(left.leads.is_empty() && left.events.is_empty());
    }
}
