//! The Pods that an object selects: those of a workload that the short form finds, or those with labels.

use serde_json::{Map, Value};

use super::{Context, key, network, title};
use crate::text;

impl Context {
    /// Returns the workloads whose Pods have these labels.
    pub(crate) fn matching(
        &self,
        selector: &Map<String, Value>,
    ) -> Vec<&(String, String, Map<String, Value>)> {
        let has_all = |labels: &Map<String, Value>| {
            selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
        };
        let all = self.workloads.iter();
        all.filter(|(_, _, labels)| !selector.is_empty() && has_all(labels))
            .collect()
    }

    /// True if the short form finds the workload of a selector itself: it has a similar name, or is the only one.
    pub(crate) fn is_found(
        &self,
        name: &str,
        endings: &[&str],
        selector: &Map<String, Value>,
    ) -> bool {
        let served: Vec<_> = self
            .workloads
            .iter()
            .filter(|(kind, _, _)| network::is_served(kind))
            .collect();
        let [(_, only, _)] = self.matching(selector)[..] else {
            return false;
        };
        let alike = endings
            .iter()
            .any(|ending| name == format!("{only}{ending}"));
        let same = served.iter().filter(|(_, one, _)| one == only).count() == 1;
        same && (alike || served.len() == 1)
    }

    /// Records the workloads that an object selects by labels.
    pub(crate) fn select(&mut self, object: &Value) {
        let name = text(object, &["metadata", "name"]).unwrap_or_default();
        let Some((selector, endings)) = network::selector(object) else {
            return;
        };
        if self.is_found(name, endings, &selector) {
            return;
        }
        let found = self.matching(&selector);
        let found: Vec<_> = found
            .into_iter()
            .map(|(kind, name, _)| (kind.clone(), name.clone()))
            .collect();
        if found.is_empty() {
            let note = format!(
                "{}: it selects pods that no object of the input creates",
                title(object)
            );
            self.left.push(note);
        }
        self.selected.extend(found);
    }

    /// True if Pods of the object need the label that distinguishes instances.
    pub(crate) fn is_selected_by_labels(&self, object: &Value) -> bool {
        self.selected.contains(&key(object))
    }
}
