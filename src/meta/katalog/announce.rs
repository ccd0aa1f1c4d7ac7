//! The Events about a Katalog.

use std::collections::{BTreeMap, BTreeSet};

use orkestra_core::{api::names, reasons::KatalogReason};

use super::{super::status::Verdict, KatalogController};
use crate::events::{Event, ObjectReference, Severity};

/// The severity, the reason and the note of an Event.
type Announcement = (Severity, KatalogReason, String);

/// The subjects of published Events, each of which is published once.
#[derive(Debug, Default)]
pub(super) struct AnnouncedSubjects {
    /// Degraded operators.
    degraded: BTreeSet<String>,
    /// The generation and the note of a refusal.
    refused: Option<(Option<i64>, String)>,
}

impl AnnouncedSubjects {
    /// Returns an Event for each operator that is degraded now, with its reason, and for each that has recovered.
    fn transitions(&mut self, now: &BTreeMap<String, Option<String>>) -> Vec<Announcement> {
        let mut announcements = Vec::new();
        for (name, degraded) in now {
            announcements.push(match degraded {
                Some(why) if self.degraded.insert(name.clone()) => (
                    Severity::Warning,
                    KatalogReason::PassesFail,
                    format!("operator {name} is degraded: {why}"),
                ),
                None if self.degraded.remove(name) => (
                    Severity::Normal,
                    KatalogReason::Recovered,
                    format!("operator {name} has recovered"),
                ),
                _ => continue,
            });
        }
        self.degraded.retain(|name| now.contains_key(name));
        announcements
    }

    /// Returns an Event if the verdict on this generation is a refusal: it names the first problem. A verdict that is not
    /// final is not published.
    fn refusal(
        &mut self,
        verdict: &Verdict,
        generation: Option<i64>,
        is_final: bool,
    ) -> Option<Announcement> {
        let Verdict::Refused { reason, message } = verdict else {
            self.refused = None;
            return None;
        };
        if *reason == KatalogReason::Fetching {
            return None;
        }
        let note = refusal_note(message);
        let refused = Some((generation, note.clone()));
        if self.refused == refused || !is_final {
            return None;
        }
        self.refused = refused;
        Some((Severity::Warning, *reason, note))
    }
}

impl KatalogController {
    /// Publishes an Event, once, when an operator is degraded, and when it has recovered.
    pub(super) fn announce_transitions(&mut self, now: &BTreeMap<String, Option<String>>) {
        let transitions = self.announced.transitions(now);
        self.announce_all(transitions);
    }

    /// Publishes an Event, once, when a revision is refused.
    pub(super) fn announce_refusal(&mut self) {
        let refusal = self.announced.refusal(
            self.judgement.verdict(),
            self.judgement.generation(),
            self.judgement.is_final(),
        );
        self.announce_all(refusal);
    }

    fn announce_all(&self, announcements: impl IntoIterator<Item = Announcement>) {
        for (severity, reason, note) in announcements {
            self.announce(severity, reason, note);
        }
    }

    /// Publishes an Event about the Katalog.
    pub(super) fn announce(&self, severity: Severity, reason: KatalogReason, note: String) {
        self.shared.context.events.publish(Event {
            regarding: ObjectReference {
                api_version: Some(format!("{}/{}", names::GROUP, names::VERSION)),
                kind: Some(self.reference.kind.kind().to_owned()),
                name: Some(self.reference.name.clone()),
                namespace: Some(self.reference.namespace.clone()),
                uid: Some(self.uid.clone()),
                ..ObjectReference::default()
            },
            severity,
            reason: reason.as_str().into(),
            note,
        });
    }
}

/// Returns why a revision is refused, from its problems, one per line: the first of them, and how many follow.
fn refusal_note(problems: &str) -> String {
    let mut lines = problems.lines();
    let first = lines.next().unwrap_or_default();
    match lines.count() {
        0 => format!("the revision is refused: {first}"),
        more => format!("the revision is refused: {first}; {more} more in the status"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_event_of_a_refusal_names_the_first_problem() {
        let one = "error[ORK0010]: spec.crds.a.b: unknown field";
        assert_eq!(refusal_note(one), format!("the revision is refused: {one}"));
        assert_eq!(
            refusal_note(&format!("{one}\nerror: x\nwarning: y")),
            format!("the revision is refused: {one}; 2 more in the status")
        );
    }

    #[test]
    fn an_operator_is_announced_once_when_it_is_degraded_and_once_when_it_has_recovered() {
        let mut announced = AnnouncedSubjects::default();
        let mut notes = |now: &[(&str, Option<&str>)]| -> Vec<String> {
            let now = now.iter();
            let now = now.map(|(name, why)| ((*name).to_owned(), why.map(str::to_owned)));
            let announcements = announced.transitions(&now.collect());
            announcements.into_iter().map(|(_, _, note)| note).collect()
        };
        let (degraded, recovered) = ([("pond", Some("x"))], [("pond", None)]);
        assert!(notes(&recovered).is_empty());
        assert_eq!(notes(&degraded), ["operator pond is degraded: x"]);
        assert!(notes(&degraded).is_empty());
        assert_eq!(notes(&recovered), ["operator pond has recovered"]);
        assert!(notes(&recovered).is_empty());
        // A removed operator is not announced as recovered.
        assert_eq!(notes(&degraded).len(), 1);
        assert!(notes(&[]).is_empty());
        assert!(notes(&recovered).is_empty());
    }

    #[test]
    fn a_refusal_is_announced_once_for_each_generation_as_soon_as_it_is_final() {
        let mut announced = AnnouncedSubjects::default();
        let refused = |reason| Verdict::Refused {
            reason,
            message: "error: x".to_owned(),
        };
        let (invalid, fetching) = (
            refused(KatalogReason::InvalidRevision),
            refused(KatalogReason::Fetching),
        );
        let mut is_announced = |verdict, generation, is_final| {
            let announcement = announced.refusal(verdict, Some(generation), is_final);
            announcement.is_some()
        };
        assert!(!is_announced(&invalid, 1, false));
        assert!(!is_announced(&fetching, 1, true));
        assert!(is_announced(&invalid, 1, true));
        assert!(!is_announced(&fetching, 1, true));
        assert!(!is_announced(&invalid, 1, true));
        assert!(is_announced(&invalid, 2, true));
        assert!(!is_announced(&Verdict::Accepted, 2, true));
        assert!(is_announced(&invalid, 2, true));
    }
}
