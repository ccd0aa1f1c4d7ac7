//! Events that trigger a pass.

use super::{Changes, PlanPlace, escaped, key::KeyPlan};
use crate::ResourceType;
use orkestra_language::api::names;
use orkestra_object::value::{Key, Node, Path};

/// Root of the latest Events.
pub const EVENTS: &str = "events";

/// Events that trigger a pass, and that templates read.
#[derive(Debug)]
pub struct EventPlan {
    /// Its path in the Katalog, for messages.
    pub path: PlanPlace,
    /// The name below `.events`.
    pub name: Key,
    /// The paths and the texts that an Event must have there; at least one.
    pub filter: Box<[(Path, Box<str>)]>,
    /// The changes that trigger a pass.
    pub on: Changes,
    /// Finds the custom resource of an Event.
    pub key: KeyPlan,
    /// The paths that templates read of the latest Event.
    pub reads: Vec<Path>,
}

/// The fields by which the API server selects Events, beside their namespace.
///
/// Source: Kubernetes, `pkg/apis/events/v1/conversion.go`, and the selectable fields of the registry of Events.
const SELECTABLE: [&str; 7] = [
    "reason",
    "regarding.apiVersion",
    "regarding.kind",
    "regarding.name",
    "regarding.namespace",
    "reportingController",
    "type",
];

/// Returns the kind of Events.
pub fn event_kind() -> ResourceType {
    ResourceType {
        group: "events.k8s.io".into(),
        version: "v1".into(),
        kind: "Event".into(),
        plural: Some("events".into()),
        namespaced: Some(true),
    }
}

impl EventPlan {
    /// True if an Event, of which [`EventPlan::kept_paths`] were kept, matches.
    pub fn admits(&self, event: &Node) -> bool {
        let says =
            |path: &Path, wanted: &str| event.at(path).and_then(Node::as_str) == Some(wanted);
        let reporter = reporter();
        let names_reporter = self.filter.iter().any(|(path, _)| *path == reporter);
        // A pass that reports an Event about itself would trigger the next.
        (names_reporter || !says(&reporter, names::EVENT_CONTROLLER))
            && self.filter.iter().all(|(path, wanted)| says(path, wanted))
    }

    /// Returns the paths that are kept of Events.
    pub fn kept_paths(&self) -> Vec<Path> {
        let mut paths = self.reads.clone();
        paths.extend(self.filter.iter().map(|(path, _)| path.clone()));
        paths.push(reporter());
        paths.extend(self.key.kept_paths());
        paths
    }

    /// Returns the namespace of the Events; `None` is any.
    pub fn namespace(&self) -> Option<&str> {
        let place = Path::of_fields(["metadata", "namespace"]);
        let mut parts = self.filter.iter();
        let (_, text) = parts.find(|(path, _)| *path == place)?;
        Some(text)
    }

    /// Returns the field selector for the API server; `None` selects all.
    pub fn field_selector(&self) -> Option<String> {
        let parts = self.filter.iter();
        let parts = parts.filter_map(|(path, text)| {
            let path = path.to_string();
            let selectable = SELECTABLE.contains(&&*path);
            selectable.then(|| format!("{path}={}", escaped(text)))
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| parts.join(","))
    }
}

/// Returns the path of the reporter of an Event.
fn reporter() -> Path {
    Path::of_fields(["reportingController"])
}
