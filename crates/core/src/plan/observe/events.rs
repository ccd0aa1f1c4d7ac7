//! `observe.events`: the Events that trigger a pass.

use super::{
    Changes, KeyPlan, changes, check_name, escaped,
    key::{self, Of},
    text,
};
use crate::{
    api::{
        names,
        observe::{EventFilter, EventType, ObjectFilter},
    },
    diagnostics::Code,
    plan::{NameRule, ResourceType},
    resources::scope::At,
    value::{Key, Node, Path},
};

/// Events that trigger a pass, and that templates read.
#[derive(Debug)]
pub struct EventPlan {
    /// Its path in the Katalog, for messages.
    pub path: Box<str>,
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

/// Compiles the entry `name` of the map at `at`.
pub(super) fn compile(at: &At<'_>, name: &str, declared: &EventFilter) -> Option<EventPlan> {
    let is_word = name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_word {
        let message = format!("`{name}` is no name of an event");
        let hint = "names are written in camel case, such as `imagePullFailed`: it is the key under `.events`";
        at.key(name).error_hint(Code::BadName, message, hint);
    }
    let at = at.field(name);
    let before = at.count();
    let EventFilter {
        reason,
        action,
        type_,
        reporting_controller,
        reporting_instance,
        namespace,
        on,
        regarding,
        related,
        key_from,
    } = declared;
    let type_ = type_.map(|type_| match type_ {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    });
    let mut filter = Vec::new();
    let own = [
        ("action", action.as_deref()),
        ("reason", reason.as_deref()),
        ("reportingController", reporting_controller.as_deref()),
        ("reportingInstance", reporting_instance.as_deref()),
        ("type", type_),
    ];
    for (field, written) in own {
        filter.extend(part(&at.field(field), &[field], written));
    }
    let place = at.field("namespace");
    if let Some(namespace) = text(&place, namespace.as_deref()) {
        check_name(&place, &namespace, NameRule::Label1123);
        filter.push((Path::of_fields(["metadata", "namespace"]), namespace));
    }
    for (field, object) in [("regarding", regarding), ("related", related)] {
        if let Some(object) = object {
            filter.extend(of_object(&at.field(field), field, object));
        }
    }
    if filter.is_empty() && at.count() == before {
        let hint = "say which events are meant: `reason: FailedScheduling`";
        at.error_hint(Code::Missing, "all events of the cluster would count", hint);
    }
    let on = changes(&at.field("on"), on.as_deref());
    let key = key::compile(&at.field("keyFrom"), key_from.as_ref(), Of::Event)?;
    Some(EventPlan {
        path: at.text(),
        name: Key::from(name),
        filter: filter.into(),
        on,
        key,
        reads: Vec::new(),
    })
}

fn part(at: &At<'_>, path: &[&str], written: Option<&str>) -> Option<(Path, Box<str>)> {
    Some((Path::of_fields(path.iter().copied()), text(at, written)?))
}

fn of_object(at: &At<'_>, root: &str, object: &ObjectFilter) -> Vec<(Path, Box<str>)> {
    let ObjectFilter {
        api_version,
        kind,
        name,
        namespace,
    } = object;
    let parts = [
        ("apiVersion", api_version),
        ("kind", kind),
        ("name", name),
        ("namespace", namespace),
    ];
    let parts = parts
        .into_iter()
        .filter_map(|(field, written)| part(&at.field(field), &[root, field], written.as_deref()));
    parts.collect()
}
