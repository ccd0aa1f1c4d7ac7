//! The reports of a Katalog's task: the status of its object, and the view for readers.

use std::{sync::Arc, time::Duration};

use orkestra_ground::Entropy;
use orkestra_language::api::KatalogStatus;
use orkestra_plan::Plan;
use tokio::time::Instant;

use super::{
    super::{
        calls::RequestError,
        directory::{KatalogView, OperatorView, SourceView},
        sources::SourceReport,
        status::{self, Enforces, Operating, ReportedState, StatusInputs, Urgency},
    },
    KatalogController, retry_at,
};

/// How long a change is delayed, to be written with others.
const DEBOUNCE: Duration = Duration::from_millis(200);
/// The minimum interval between two writes of counts.
const COUNTS_PERIOD: Duration = Duration::from_secs(5);

/// How long operators may take to start after a restart before a status that calls them ready is changed: a restart alone is
/// not reported.
const RESTART_PATIENCE: Duration = Duration::from_secs(10);

/// How long operators may take to run a new revision before it is reported that they do not run it yet.
const ROLLOUT_PATIENCE: Duration = Duration::from_secs(1);

/// The progress of writing the status.
#[derive(Debug, Default)]
pub(crate) struct ReportProgress {
    /// Since when the written status is outdated in more than counts.
    wrong_since: Option<Instant>,
    written_at: Option<Instant>,
    failures: u32,
    retry_at: Option<Instant>,
}

impl ReportProgress {
    /// Resets the backoff of earlier failures.
    pub(crate) fn forgive(&mut self) {
        (self.failures, self.retry_at) = (0, None);
    }

    /// Notes that the status was written.
    fn note_written(&mut self) {
        *self = Self {
            written_at: Some(Instant::now()),
            ..Self::default()
        };
    }

    /// Notes that the status could not be written; returns when to retry.
    fn note_failure(&mut self, entropy: &Entropy) -> Option<Instant> {
        self.failures += 1;
        self.retry_at = Some(retry_at(self.failures, entropy));
        self.retry_at
    }

    /// Returns when the written status has to be replaced by the wanted one; none if it need not be.
    fn due(&mut self, written: &KatalogStatus, wanted: &KatalogStatus) -> Option<Instant> {
        let now = Instant::now();
        let due = match self.urgency(written, wanted) {
            Urgency::None => {
                self.wrong_since = None;
                return None;
            }
            // A status that this process did not write counts as written just before it started.
            Urgency::Counts => {
                self.written_at
                    .unwrap_or(*self.wrong_since.get_or_insert(now))
                    + COUNTS_PERIOD
            }
            Urgency::Restart => *self.wrong_since.get_or_insert(now) + RESTART_PATIENCE,
            Urgency::Rollout => *self.wrong_since.get_or_insert(now) + ROLLOUT_PATIENCE,
            Urgency::Prompt => *self.wrong_since.get_or_insert(now) + DEBOUNCE,
        };
        Some(self.retry_at.map_or(due, |retry| retry.max(due)))
    }

    fn urgency(&self, written: &KatalogStatus, wanted: &KatalogStatus) -> Urgency {
        match status::urgency(written, wanted) {
            Urgency::Prompt if self.written_at.is_none() && status::is_restart(written, wanted) => {
                Urgency::Restart
            }
            Urgency::Prompt if status::is_rollout(written, wanted) => Urgency::Rollout,
            urgency => urgency,
        }
    }
}

impl KatalogController {
    /// Publishes the view and writes the status if it is due; returns when it is due next.
    pub(crate) async fn report(&mut self) -> Option<Instant> {
        if self.is_gone() {
            return None;
        }
        let (wanted, view) = self.describe();
        self.shared.publisher.put(view);
        if !self.lead.is_leader() || !self.shared.context.cluster.reach().is_up() {
            return None;
        }
        let unenforced = self.unenforced();
        self.announce_state(&unenforced);
        let due = self.report.due(&self.object.status, &wanted)?;
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
                tracing::warn!(katalog = %self.reference, error = %error, "cannot write the status");
                self.report.note_failure(&self.shared.context.entropy)
            }
        }
    }

    async fn write_status(&mut self, wanted: &KatalogStatus) -> Result<(), RequestError> {
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
                self.report.note_written();
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
    pub(crate) async fn write_operated(&mut self) -> Result<(), RequestError> {
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

    /// Returns what the Katalog declares and the API server does not enforce.
    fn unenforced(&self) -> Vec<String> {
        self.shared.context.enforcement.of(&self.reference)
    }

    /// Publishes the view for readers.
    pub(crate) fn publish(&mut self) {
        let (_, view) = self.describe();
        self.shared.publisher.put(view);
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
        let states = ReportedState::of_all(&operators);
        let (operated, releasing) = (self.operated.records(), self.releases.states());
        let running = self.running.as_ref();
        let sources = self.report_sources();
        let unenforced = self.unenforced();
        let inputs = StatusInputs {
            generation: self.judgement.generation(),
            verdict: self.judgement.verdict(),
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
            unenforced: &unenforced,
            enforces: Enforces {
                webhooks: self.shared.context.webhooks,
                policies: self.shared.context.enforcement.has_policies(),
            },
            waits: self.waits.as_deref(),
            deletion_problem: self.last_error.as_deref(),
        };
        let mut wanted = status::compute(
            &inputs,
            &self.object.status,
            self.shared.context.clock.now(),
        );
        self.complete(&mut wanted);
        let view = self.view(&inputs, &wanted, &sources);
        if self.lead.is_leader() {
            self.announce_operators(states);
        }
        (wanted, view)
    }

    /// Adds the handled request to a status, and the revisions that the stored one alone knows of while none was read: a later process
    /// would take the Katalog for a new one.
    fn complete(&self, wanted: &mut KatalogStatus) {
        if let Some(requested) = &self.object.requested {
            wanted.last_handled_reconcile_at = Some(requested.latest().to_owned());
        }
        if !self.is_decided() {
            let stored = &self.object.status;
            wanted.revision.clone_from(&stored.revision);
            wanted.wanted_revision.clone_from(&stored.wanted_revision);
        }
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
        let records = running.map_or(&[][..], |running| &*running.used.sources);
        KatalogView {
            reference: self.reference.clone(),
            kind: self.reference.kind,
            sources: SourceView::of(rows, records),
            about: self.judgement.document().about.clone(),
            plan: self.shown_plan(),
            ready,
            revision,
            operators: self.reported_views(),
            disabled: inputs.disabled.to_vec(),
            settled: self.settled,
            decided: self.is_decided(),
            had_policies: self.object.status.had_policies(),
        }
    }

    /// Returns the plan in force: the running one, else the last one that the supervisor was given, until another replaces it.
    fn shown_plan(&self) -> Option<Arc<Plan>> {
        if self.is_leaving() {
            return None;
        }
        let running = self.running.as_ref().map(|running| &running.plan);
        let given = || self.claimed.as_ref()?.plan.as_ref();
        running.or_else(given).cloned()
    }

    /// True unless an accepted revision may exist that was not read yet.
    fn is_decided(&self) -> bool {
        let is_new = self.object.status.revision.is_none();
        self.looked || is_new || self.is_leaving() || self.shown_plan().is_some()
    }
}
