//! The reports of a Katalog's task: the status of its object, and the view for readers.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use orkestra_core::{
    api::{KatalogStatus, names},
    reasons::KatalogReason,
};
use tokio::time::Instant;

use super::{
    super::{
        calls::RequestError,
        directory::{KatalogView, OperatorView, SourceView},
        sources::SourceReport,
        status::{self, Operating, StatusInputs, Urgency, Verdict},
    },
    KatalogController, retry_at,
};
use crate::events::{Event, ObjectReference, Severity};

/// How long a change is delayed, to be written with others.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The minimum interval between two writes of counts.
const COUNTS_PERIOD: Duration = Duration::from_secs(5);

/// How long operators may take to start after a restart before a status that calls them ready is changed: a restart alone is
/// not reported.
const RESTART_PATIENCE: Duration = Duration::from_secs(10);

/// How long operators may take to run a new revision before it is reported that they do not run it yet.
const ROLLOUT_PATIENCE: Duration = Duration::from_secs(1);

/// The progress of reporting.
#[derive(Debug, Default)]
pub(super) struct ReportProgress {
    /// Since when the written status is outdated in more than counts.
    wrong_since: Option<Instant>,
    written_at: Option<Instant>,
    failures: u32,
    retry_at: Option<Instant>,
}

impl ReportProgress {
    /// Resets the backoff of earlier failures.
    pub(super) fn forgive(&mut self) {
        (self.failures, self.retry_at) = (0, None);
    }
}

impl KatalogController {
    /// Publishes the view and writes the status if it is due; returns when it is due next.
    pub(super) async fn report(&mut self) -> Option<Instant> {
        if self.is_gone() {
            return None;
        }
        let (wanted, view) = self.describe();
        self.shared.publisher.put(view);
        if !self.lead.is_leader() || !self.shared.context.cluster.reach().is_up() {
            return None;
        }
        self.report_refusal();
        let written = &self.object.status;
        let mut urgency = status::urgency(written, &wanted);
        if urgency == Urgency::Prompt
            && self.report.written_at.is_none()
            && status::is_restart(written, &wanted)
        {
            urgency = Urgency::Restart;
        } else if urgency == Urgency::Prompt && status::is_rollout(written, &wanted) {
            urgency = Urgency::Rollout;
        }
        let due = self.due(urgency)?;
        if due > Instant::now() {
            return Some(due);
        }
        match self.write_status(&wanted).await {
            Ok(()) => None,
            Err(_) if self.is_gone() => None,
            Err(error) if error.is_conflict() || !self.shared.context.leadership.leads() => {
                Some(Instant::now() + DEBOUNCE)
            }
            Err(error) => {
                self.report.failures += 1;
                tracing::warn!(katalog = %self.reference, error = %error, "cannot write the status");
                let entropy = &self.shared.context.entropy;
                self.report.retry_at = Some(retry_at(self.report.failures, entropy));
                self.report.retry_at
            }
        }
    }

    /// Returns when a difference of this urgency has to be written.
    fn due(&mut self, urgency: Urgency) -> Option<Instant> {
        let now = Instant::now();
        let due = match urgency {
            Urgency::None => {
                self.report.wrong_since = None;
                return None;
            }
            // A status that this process did not write counts as written just before it started.
            Urgency::Counts => {
                self.report
                    .written_at
                    .unwrap_or(*self.report.wrong_since.get_or_insert(now))
                    + COUNTS_PERIOD
            }
            Urgency::Restart => *self.report.wrong_since.get_or_insert(now) + RESTART_PATIENCE,
            Urgency::Rollout => *self.report.wrong_since.get_or_insert(now) + ROLLOUT_PATIENCE,
            Urgency::Prompt => *self.report.wrong_since.get_or_insert(now) + DEBOUNCE,
        };
        Some(self.report.retry_at.map_or(due, |retry| retry.max(due)))
    }

    async fn write_status(
        &mut self,
        wanted: &orkestra_core::api::KatalogStatus,
    ) -> Result<(), RequestError> {
        let patch = status::patch(wanted, self.object.metadata.resource_version.as_deref());
        let written = self
            .resource
            .merge_status(
                Some(&self.reference.namespace),
                &self.reference.name,
                &patch,
            )
            .await;
        match written {
            Ok(answer) => {
                self.see_answer(answer);
                self.report = ReportProgress {
                    written_at: Some(Instant::now()),
                    ..ReportProgress::default()
                };
                Ok(())
            }
            Err(error) => {
                if error.is_conflict() || error.is_not_found() {
                    self.look_again().await?;
                }
                Err(error)
            }
        }
    }

    /// Writes the status now if it lacks any operated kind.
    pub(super) async fn write_operated(&mut self) -> Result<(), RequestError> {
        if self.operated.are_written(&self.object.status.operated) {
            return Ok(());
        }
        let (wanted, _) = self.describe();
        self.write_status(&wanted).await
    }

    /// Returns the operators for readers; if another process leads, with the rows that it wrote.
    fn reported_views(&self) -> Vec<OperatorView> {
        let mut views = self.views.clone();
        if !self.lead.is_leader() {
            let rows = &self.object.status.operators;
            for view in &mut views {
                let row = rows.iter().find(|row| row.name == view.name());
                view.reported = row.cloned().map(Arc::new);
            }
        }
        views
    }

    /// Publishes the view for readers.
    pub(super) fn publish(&mut self) {
        let (_, view) = self.describe();
        self.shared.publisher.put(view);
    }

    /// Publishes an Event, once, when an operator is degraded, and when it has recovered.
    fn report_transitions(&mut self, now: &BTreeMap<String, Option<String>>) {
        for (name, degraded) in now {
            let (severity, reason, note) = match degraded {
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
            };
            self.announce(severity, reason, note);
        }
        self.degraded.retain(|name| now.contains_key(name));
    }

    /// Publishes an Event, once, when a revision is refused: it names the first problem.
    fn report_refusal(&mut self) {
        let Verdict::Refused { reason, message } = &self.verdict else {
            self.refused = None;
            return;
        };
        if *reason == KatalogReason::Fetching {
            return;
        }
        let note = refusal_note(message);
        let refused = Some((self.observed, note.clone()));
        if self.refused != refused && self.judged.is_some() {
            self.announce(Severity::Warning, *reason, note);
            self.refused = refused;
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

    /// Returns the status as it should be, and the view for readers.
    fn describe(&mut self) -> (KatalogStatus, KatalogView) {
        let statuses: Vec<_> = self
            .views
            .iter_mut()
            .map(|view| view.status.borrow_and_update().clone())
            .collect();
        let operators: Vec<_> = self
            .views
            .iter()
            .zip(statuses)
            .map(|(view, status)| Operating {
                wanted: &view.wanted,
                status,
                conflict: view.conflict.is_some(),
            })
            .collect();
        let transitions = operators
            .iter()
            .map(|operator| {
                let why = operator.degraded().map(|degraded| degraded.message.clone());
                (operator.wanted.plan.name.clone(), why)
            })
            .collect();
        let (operated, releasing) = (self.operated.records(), self.releases.states());
        let running = self.running.as_ref();
        let sources = self.report_sources();
        let inputs = StatusInputs {
            generation: self.observed,
            verdict: &self.verdict,
            revision: running.map(|running| &*running.revision),
            operators: &operators,
            disabled: running
                .map(|running| running.disabled.as_slice())
                .unwrap_or_default(),
            stopped: running
                .map(|running| running.plan.stopped.as_slice())
                .unwrap_or_default(),
            operated: &operated,
            releasing: &releasing,
            suspended: self.object.suspended,
            sources: &sources.rows,
            source_problem: (sources.problem.as_ref())
                .map(|(reason, message)| (*reason, &**message)),
            waits: self.waits.as_deref(),
            deletion_problem: self.last_error.as_deref(),
        };
        let mut wanted = status::compute(
            &inputs,
            &self.object.status,
            self.shared.context.clock.now(),
        );
        if let Some(requested) = &self.object.requested {
            wanted.last_handled_reconcile_at = Some(requested.latest().to_owned());
        }
        let view = self.view(&inputs, &wanted, &sources);
        self.report_transitions(&transitions);
        (wanted, view)
    }

    /// Returns the view for readers: of a follower, with what the leading process wrote.
    fn view(
        &self,
        inputs: &StatusInputs<'_>,
        wanted: &KatalogStatus,
        sources: &SourceReport,
    ) -> KatalogView {
        let (ready, revision, rows) = if self.lead.is_leader() {
            (
                status::readiness(inputs),
                wanted.revision.clone(),
                &sources.rows,
            )
        } else {
            let written = &self.object.status;
            (
                status::current_ready(written),
                written.revision.clone(),
                &written.sources,
            )
        };
        let running = self.running.as_ref();
        let records = running.map_or(&[][..], |running| &running.sources);
        KatalogView {
            reference: self.reference.clone(),
            kind: self.reference.kind,
            sources: SourceView::of(rows, records),
            about: self.document.about.clone(),
            plan: running.map(|running| Arc::clone(&running.plan)),
            ready,
            revision,
            operators: self.reported_views(),
            disabled: inputs.disabled.to_vec(),
            settled: self.settled,
        }
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
}
