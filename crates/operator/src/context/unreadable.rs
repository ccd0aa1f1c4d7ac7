//! Reports of unreadable objects: an Event about each, and a metric.

use orkestra_cluster::{requests::Served, watch::Report};
use orkestra_engine::reconcile::record::Identity;
use orkestra_language::reasons::Reason;

use crate::{
    events::{Event, EventSink, ObjectReference, Severity},
    metrics::Metrics,
};

/// Reports unreadable objects in Events and metrics.
pub(crate) struct Unreadable {
    events: EventSink,
    metrics: Metrics,
}

impl Unreadable {
    pub(crate) fn new(events: EventSink, metrics: Metrics) -> Self {
        Self { events, metrics }
    }
}

impl Report for Unreadable {
    fn unreadable(&self, served: &Served, object: &Identity, why: &str) {
        self.events.publish(Event {
            regarding: ObjectReference {
                api_version: Some(served.api_version()),
                kind: Some(served.kind.to_string()),
                name: Some(object.key.name.to_string()),
                namespace: object.key.namespace.as_deref().map(str::to_owned),
                uid: Some(object.uid.to_string()),
                ..ObjectReference::default()
            },
            severity: Severity::Warning,
            reason: Reason::Unreadable.as_str().into(),
            note: format!("the object cannot be read: {why}; it is read again when it changes"),
        });
    }

    fn count(&self, before: usize, after: usize) {
        self.metrics.unreadable_objects(before, after);
    }
}
