//! The Events about a Katalog.

use std::collections::BTreeMap;

use orkestra_language::{api::names, reasons::KatalogReason};
use orkestra_plan::Plan;

use super::{
    super::status::{OperatorLine, ReportedState, ReportedStates, Verdict},
    KatalogController,
};
use orkestra_operator::events::{Event, ObjectReference, Severity};

/// The severity, the reason and the note of an Event.
type Announcement = (Severity, KatalogReason, String);

/// The subjects of published Events, each of which is published once.
#[derive(Debug, Default)]
pub(crate) struct AnnouncedSubjects {
    /// The states of operators.
    operators: ReportedStates,
    /// The generation and the note of a refusal.
    refused: Option<(Option<i64>, String)>,
    /// Whether the Katalog is suspended; none before this process has reported on it.
    suspended: Option<bool>,
    /// What is not enforced.
    unenforced: Option<String>,
}

impl AnnouncedSubjects {
    /// Returns an Event if the Katalog was suspended or resumed.
    fn suspension(&mut self, suspended: bool) -> Option<Announcement> {
        let before = self.suspended.replace(suspended);
        match (before, suspended) {
            (None | Some(false), true) => Some((
                Severity::Normal,
                KatalogReason::Suspended,
                "suspended: its operators process deletions of custom resources only".to_owned(),
            )),
            (Some(true), false) => Some((
                Severity::Normal,
                KatalogReason::Resumed,
                "resumed: its operators work again".to_owned(),
            )),
            _ => None,
        }
    }

    /// Returns an Event if what is not enforced differs.
    fn unenforced(&mut self, now: Option<String>) -> Option<Announcement> {
        let before = std::mem::replace(&mut self.unenforced, now);
        match (&before, &self.unenforced) {
            (before, Some(now)) if before.as_ref() != Some(now) => {
                Some((Severity::Warning, KatalogReason::NotEnforced, now.clone()))
            }
            (Some(_), None) => Some((
                Severity::Normal,
                KatalogReason::Recovered,
                "everything that it declares is in place at the API server".to_owned(),
            )),
            _ => None,
        }
    }

    /// Returns an Event if the verdict on this generation is a refusal, or it waits for a source that cannot be fetched: it names the
    /// first problem. A verdict that is not final is not published.
    fn refusal(
        &mut self,
        verdict: &Verdict,
        generation: Option<i64>,
        is_final: bool,
    ) -> Option<Announcement> {
        let (Verdict::Refused { reason, message } | Verdict::Waiting { reason, message }) = verdict
        else {
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
    /// Logs and publishes, once for each state, what an operator runs or waits for, and whether its passes or custom resources
    /// fail.
    pub(crate) fn announce_operators(&mut self, now: BTreeMap<String, ReportedState>) {
        for line in self.announced.operators.changes(now) {
            let is_known =
                line.reason == KatalogReason::Switched && self.has_switched(&line.operator);
            let OperatorLine {
                severity,
                reason,
                text,
                ..
            } = line;
            self.log(severity, reason, &text);
            // After a restart only the log says so again.
            if !is_known {
                self.announce(severity, reason, text);
            }
        }
    }

    /// Logs and publishes, once, that a revision is refused, that the Katalog is suspended or resumed, and what is not enforced.
    pub(crate) fn announce_state(&mut self, unenforced: &[String]) {
        let refusal = self.announced.refusal(
            self.judgement.verdict(),
            self.judgement.generation(),
            self.judgement.is_final(),
        );
        if let Some((severity, reason, note)) = refusal {
            let (katalog, why) = (&self.reference, reason.as_str());
            match self.judgement.verdict() {
                Verdict::Refused { message, .. } => {
                    tracing::warn!(%katalog, reason = why, problems = message, "revision refused");
                }
                Verdict::Waiting { message, .. } => {
                    tracing::warn!(%katalog, reason = why, problems = message, "sources are missing");
                }
                Verdict::Accepted | Verdict::Pending(_) | Verdict::Deleted => {}
            }
            self.announce(severity, reason, note);
        }
        let suspension = self.announced.suspension(self.object.suspended);
        let now = (!unenforced.is_empty()).then(|| unenforced.join("; "));
        let unenforced = self.announced.unenforced(now);
        for line in suspension.into_iter().chain(unenforced) {
            self.report_line(line);
        }
    }

    /// Logs and publishes that a revision is accepted. After a restart it is accepted again, which is no news.
    pub(crate) fn announce_accepted(&self, plan: &Plan, revision: &str) {
        let status = &self.object.status;
        let known = [&status.revision, &status.wanted_revision];
        if known.iter().any(|known| known.as_deref() == Some(revision)) {
            return;
        }
        let names: Vec<&str> = plan.operators.iter().map(|one| &*one.name).collect();
        let text = format!("revision {revision} is accepted: {}", names.join(", "));
        self.report_line((Severity::Normal, KatalogReason::Accepted, text));
    }

    /// True if the status says that the operator runs the wanted revision.
    fn has_switched(&self, operator: &str) -> bool {
        let wanted = self.views.iter().find(|view| view.name() == operator);
        let mut rows = self.object.status.operators.iter();
        let row = rows.find(|row| row.name == operator);
        let running = row.and_then(|row| row.revision.as_deref());
        running.is_some() && running == wanted.map(|view| &*view.wanted.revision)
    }

    /// Logs a line and publishes it as an Event.
    pub(crate) fn report_line(&self, (severity, reason, text): Announcement) {
        self.log(severity, reason, &text);
        self.announce(severity, reason, text);
    }

    fn log(&self, severity: Severity, reason: KatalogReason, text: &str) {
        let (katalog, reason) = (&self.reference, reason.as_str());
        match severity {
            Severity::Normal => tracing::info!(%katalog, reason, "{text}"),
            Severity::Warning => tracing::warn!(%katalog, reason, "{text}"),
        }
    }

    /// Publishes an Event about the Katalog.
    pub(crate) fn announce(&self, severity: Severity, reason: KatalogReason, note: String) {
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
    fn suspension_and_resumption_are_announced_once() {
        let mut announced = AnnouncedSubjects::default();
        let mut reasons = |suspended| announced.suspension(suspended).map(|(_, reason, _)| reason);
        assert_eq!(reasons(false), None);
        assert_eq!(reasons(true), Some(KatalogReason::Suspended));
        assert_eq!(reasons(true), None);
        assert_eq!(reasons(false), Some(KatalogReason::Resumed));
        assert_eq!(reasons(false), None);
    }

    #[test]
    fn what_is_not_enforced_is_announced_when_it_differs() {
        let mut announced = AnnouncedSubjects::default();
        let mut reasons = |now: Option<&str>| {
            let announcement = announced.unenforced(now.map(str::to_owned));
            announcement.map(|(_, reason, _)| reason)
        };
        assert_eq!(reasons(None), None);
        assert_eq!(reasons(Some("a")), Some(KatalogReason::NotEnforced));
        assert_eq!(reasons(Some("a")), None);
        assert_eq!(reasons(Some("b")), Some(KatalogReason::NotEnforced));
        assert_eq!(reasons(None), Some(KatalogReason::Recovered));
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
            Verdict::Waiting {
                reason: KatalogReason::Fetching,
                message: "fetching a".to_owned(),
            },
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
