//! The requests of `ork` to the API server, from the audit log.

use std::collections::BTreeMap;

use serde::Serialize;
use testbed::AuditEvent;

/// Requests by resource. Requests for Kubernetes Events, leases and Katalogs are counted separately, because they do not grow
/// with the number of custom resources.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Requests {
    /// Requests for custom resources and children, including watches.
    pub(crate) total: usize,
    /// The writes in `total`.
    pub(crate) writes: usize,
    /// The watches in `total`.
    pub(crate) watches: usize,
    /// All requests except watches and those for leases.
    pub(crate) asked: usize,
    /// All writes except those of leases.
    pub(crate) written: usize,
    /// Refused requests, for any resource.
    pub(crate) refused: usize,
    /// Writes of Kubernetes Events.
    pub(crate) events: usize,
    /// Requests for leases.
    pub(crate) leases: usize,
    /// Requests for Katalogs and their revisions.
    pub(crate) katalogs: usize,
    /// All requests by `verb resource/subresource`.
    pub(crate) by: BTreeMap<String, usize>,
}

impl Requests {
    /// Counts the requests of `user`.
    pub(crate) fn of(user: &str, events: &[AuditEvent]) -> Self {
        let mut counted = Self::default();
        for event in events.iter().filter(|event| event.user == user) {
            counted.add(event);
        }
        counted
    }

    /// Returns true if requests like this one grow with the number of custom resources.
    pub(crate) fn grows(event: &AuditEvent) -> bool {
        !matches!(
            event.resource.as_str(),
            "events"
                | "leases"
                | "katalogs"
                | "motifs"
                | "controllerrevisions"
                | "customresourcedefinitions"
        )
    }

    fn add(&mut self, event: &AuditEvent) {
        let mut key = format!("{} {}", event.verb, event.resource);
        if !event.subresource.is_empty() {
            key = format!("{key}/{}", event.subresource);
        }
        *self.by.entry(key).or_default() += 1;
        self.refused += usize::from(event.code >= 400);
        if event.resource != "leases" {
            self.asked += usize::from(event.verb != "watch");
            self.written += usize::from(event.is_write());
        }
        match event.resource.as_str() {
            _ if Self::grows(event) => {
                self.total += 1;
                self.writes += usize::from(event.is_write());
                self.watches += usize::from(event.verb == "watch");
            }
            "events" => self.events += 1,
            "leases" => self.leases += 1,
            _ => self.katalogs += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(user: &str, verb: &str, resource: &str, subresource: &str, code: u16) -> AuditEvent {
        AuditEvent {
            stage: "ResponseComplete".to_owned(),
            verb: verb.to_owned(),
            user: user.to_owned(),
            user_agent: String::new(),
            group: String::new(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: String::new(),
            name: String::new(),
            code,
            message: String::new(),
            uri: String::new(),
            timestamp: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn what_does_not_grow_with_the_resources_is_counted_apart_and_others_not_at_all() {
        let events = [
            event("ork", "patch", "shops", "status", 200),
            event("ork", "patch", "configmaps", "", 409),
            event("ork", "watch", "configmaps", "", 200),
            event("ork", "create", "events", "", 201),
            event("ork", "patch", "katalogs", "status", 200),
            event("ork", "update", "leases", "", 200),
            event("somebody", "patch", "configmaps", "", 200),
        ];
        let counted = Requests::of("ork", &events);
        assert_eq!(
            (counted.total, counted.writes, counted.watches),
            (3, 2, 1),
            "{counted:?}"
        );
        assert_eq!(
            (counted.events, counted.leases, counted.katalogs),
            (1, 1, 1)
        );
        assert_eq!((counted.asked, counted.written), (4, 4));
        assert_eq!((counted.refused, counted.by["patch shops/status"]), (1, 1));
    }
}
