//! The effects of a Katalog's task: finalizer, revision, operators.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orkestra_language::api::{OperatedKind, names};
use orkestra_plan::GroupKind;
use serde_json::json;
use tokio::time::Instant;

use super::{
    super::{calls::RequestError, directory::OperatorView, ledger::WantedKatalog},
    Existence, KatalogController, Lead, Resumption, Running,
    judge::{RunnableRevision, kinds_of},
    retry_at,
};
use crate::{known::storage, release::group_kind};
use orkestra_operator::Phase;

/// The delay before leadership is checked after a refused write.
const LOST: Duration = Duration::from_millis(500);

impl KatalogController {
    /// Moves the cluster one step towards the object's spec; returns when to retry if something failed.
    pub(crate) async fn act(&mut self) -> Option<Instant> {
        if self.lead == Lead::TakingOver {
            self.operated.inherit(&self.object.status.operated);
        }
        let result = if !self.lead.is_leader() {
            self.stand_by().await.map(|()| None)
        } else if self.is_leaving() {
            self.lead = Lead::Confirmed;
            self.tear_down().await
        } else if self.is_deleting() {
            self.note_deletion();
            self.lead = Lead::Confirmed;
            self.clear().await
        } else {
            self.follow().await.map(|()| None)
        };
        let error = match result {
            Ok(again) => {
                self.failures = 0;
                self.last_error = None;
                return again;
            }
            Err(error) => error,
        };
        if self.lead.is_leader() && !self.shared.context.leadership.leads() {
            // The write was refused because the lease was lost: the next iteration detects that.
            return Some(Instant::now() + LOST);
        }
        if error.is_conflict() && self.look_again().await.is_ok() {
            return Some(Instant::now());
        }
        self.failures += 1;
        tracing::warn!(katalog = %self.reference, error = %error, failures = self.failures, "cannot reconcile the Katalog");
        self.judgement.note_failure(&error);
        self.last_error = Some(error.to_string());
        Some(retry_at(self.failures, &self.shared.context.entropy))
    }

    fn note_deletion(&mut self) {
        self.judgement
            .note_deletion(self.object.metadata.generation);
    }

    /// Runs the newest good revision of a Katalog that is not being deleted.
    async fn follow(&mut self) -> Result<(), RequestError> {
        self.judge().await;
        if self.lead == Lead::TakingOver && self.resumption != Resumption::Starting {
            self.take_over();
        }
        if self.resumption == Resumption::Unknown {
            self.resumption = self.resume().await?;
        }
        self.load_composed().await?;
        if self.judgement.candidate().is_some() && self.is_resuming() {
            self.claim();
            return Ok(());
        }
        self.apply_definitions().await?;
        if self.judgement.candidate().is_some() {
            self.accept().await?;
        }
        if self.running.is_none() && self.judgement.is_refused() && !self.looked {
            self.load_last_good().await?;
        }
        self.lead = Lead::Confirmed;
        self.record_operated().await?;
        self.claim();
        self.weigh_leftovers().await?;
        self.release_leftovers();
        Ok(())
    }

    /// Prepares what the leading process runs, and writes nothing.
    async fn stand_by(&mut self) -> Result<(), RequestError> {
        if self.is_deleting() {
            self.note_deletion();
        } else {
            self.judge().await;
        }
        if let Some(judged) = self.judgement.take_candidate() {
            let revision = self.object.status.revision.clone().unwrap_or_default();
            self.adopt(judged, revision);
            self.judgement.note_accepted();
        } else if self.is_behind() && !self.is_leaving() {
            if let Some((judged, revision)) = self.last_good().await? {
                self.adopt(judged, revision);
            }
            self.looked = true;
        }
        if self.is_leaving() {
            self.running = None;
        }
        self.claim();
        Ok(())
    }

    /// Takes over the leadership: the prepared revision is stored as if it were new.
    fn take_over(&mut self) {
        if self.is_composed() {
            // The last process may have composed another one: it is among the stored ones.
            self.running = None;
            self.judgement.drop_candidate();
            self.looked = false;
        } else if let Some(running) = self.running.take() {
            self.judgement.reopen(running);
            // A previously accepted revision is found among the stored ones, as after a restart.
            self.looked = false;
        }
        self.resumption = Resumption::Unknown;
    }

    /// Resumes the revision in force, if the newest one was still waiting when the last process ended: it runs until the
    /// newest one can.
    async fn resume(&mut self) -> Result<Resumption, RequestError> {
        let status = &self.object.status;
        let (Some(revision), Some(_)) = (&status.revision, &status.wanted_revision) else {
            return Ok(Resumption::Handled);
        };
        let stored = self.revisions.list().await?;
        let in_force = stored.iter().find(|stored| stored.name == *revision);
        let judged = match in_force {
            Some(stored) => self.judge_stored(stored).await,
            None => None,
        };
        let Some(judged) = judged else {
            return Ok(Resumption::Handled);
        };
        let is_newest = |candidate: &RunnableRevision| candidate.hash == judged.hash;
        if self.judgement.candidate().is_some_and(is_newest) {
            return Ok(Resumption::Handled);
        }
        let revision = revision.clone();
        tracing::info!(katalog = %self.reference, revision, "the revision in force keeps running until the newest one can run");
        self.adopt(judged, revision);
        Ok(Resumption::Starting)
    }

    /// True if operators of the revision that was in force are still starting.
    fn is_resuming(&mut self) -> bool {
        let Some(running) = &self.running else {
            return false;
        };
        if self.resumption != Resumption::Starting {
            return false;
        }
        let revision = &running.revision;
        let is_up =
            |view: &mut OperatorView| view.wanted.revision == *revision && view.is_settled();
        let up = self
            .views
            .iter_mut()
            .filter_map(|view| is_up(view).then_some(()))
            .count();
        if up < running.plan.operators.len() {
            return true;
        }
        self.resumption = Resumption::Handled;
        false
    }

    /// Runs a stored revision. Its declarations for kinds that are operated already are written into the status first:
    /// metadata on custom resources is checked against them.
    pub(crate) async fn start(
        &mut self,
        judged: RunnableRevision,
        revision: String,
    ) -> Result<(), RequestError> {
        self.record_earlier().await?;
        for operator in &judged.plan.operators {
            self.releases
                .drop_waiting_for(&operator.resource.group_kind());
            self.operated.declare(operator);
        }
        if let Err(error) = self.write_operated().await {
            self.judgement.restore(Some(judged));
            return Err(error);
        }
        self.announce_accepted(&judged.plan, &revision);
        self.adopt(judged, revision);
        Ok(())
    }

    fn adopt(&mut self, judged: RunnableRevision, revision: String) {
        self.note_declared(&judged.plan);
        self.running = Some(Running {
            revision: revision.into(),
            runs: judged,
        });
    }

    /// Returns the kinds of operators that have filled their caches, and whose claims this Katalog has: the kinds operated
    /// from now on. An operator without its CRD or permissions, or whose kind another Katalog has, operates nothing.
    fn ready_to_operate(&self) -> Vec<OperatedKind> {
        if !self.lead.is_leader() {
            return Vec::new();
        }
        let held = self.shared.supervisor.held_by(&self.reference);
        let ready = self.views.iter().filter(|view| {
            let phase = view.status.borrow().phase;
            view.conflict.is_none()
                && matches!(phase, Phase::Standby | Phase::Running | Phase::Deleting)
                && held.contains(&view.wanted.plan.resource.group_kind())
        });
        ready
            .map(|view| self.operated.record_of(&view.wanted.plan))
            .collect()
    }

    /// True if a kind is about to be operated that is not recorded as such.
    pub(crate) fn has_unrecorded(&self) -> bool {
        self.operated.lacks_record(&self.ready_to_operate())
    }

    /// Records in the status which kinds are operated from now on, before the first custom resource is written: so a process
    /// that finds the Katalog changed or deleted knows what to release.
    async fn record_operated(&mut self) -> Result<(), RequestError> {
        let ready = self.ready_to_operate();
        self.operated.add(&ready);
        if self.operated.lacks_record(&ready) {
            self.write_operated().await?;
            self.operated.note_written();
        }
        Ok(())
    }

    /// Reports to the supervisor what this Katalog claims and runs.
    pub(crate) fn claim(&mut self) {
        let claims = self.wanted_kinds();
        let written: BTreeSet<_> = self.object.status.operated.iter().map(group_kind).collect();
        self.operated.note_recorded(&written);
        let leftovers = written.iter().chain(self.operated.names()).cloned();
        let wanted = WantedKatalog {
            uid: self.uid.clone(),
            seniority: self.seniority(),
            storage: storage(&self.shared.context.crds, &claims),
            plan: self
                .running
                .as_ref()
                .map(|running| Arc::clone(&running.plan)),
            revision: self
                .running
                .as_ref()
                .map(|running| Arc::clone(&running.revision))
                .unwrap_or_default(),
            stored: self.lead == Lead::Confirmed,
            recorded: self.operated.recorded().clone(),
            leftovers: leftovers
                .filter(|kind| !claims.contains(kind) && self.is_proven(kind))
                .collect(),
            operated: written,
            suspended: self.object.suspended,
            claims,
        };
        // A report to the supervisor wakes every Katalog.
        if self.claimed.as_ref() != Some(&wanted) {
            self.claimed = Some(wanted.clone());
            self.shared.supervisor.want(&self.reference, wanted);
        }
    }

    /// Returns the kinds of the running revision and of the candidate; if there is neither, those that ran before the
    /// restart: a Katalog without a good revision releases nothing. One that is suspended wants those of them that it has
    /// operated, and one that is being deleted none.
    pub(crate) fn wanted_kinds(&self) -> BTreeSet<GroupKind> {
        if self.is_leaving() {
            return BTreeSet::new();
        }
        let plans = [
            self.running.as_ref().map(|running| &running.plan),
            self.judgement.candidate().map(|judged| &judged.plan),
        ];
        let mut kinds: BTreeSet<_> = plans
            .into_iter()
            .flatten()
            .flat_map(|plan| kinds_of(plan))
            .collect();
        if self.running.is_none() && self.judgement.candidate().is_none() {
            let proven = self.operated.names().filter(|kind| self.is_proven(kind));
            kinds.extend(proven.cloned());
        }
        if self.object.suspended {
            // A kind that it never operated is left to others, such as a Komposer that it is a source of.
            kinds.retain(|kind| self.operated.contains(kind));
        }
        kinds
    }

    /// Releases everything that the Katalog operated, then removes its finalizer; returns when to continue, if that is due.
    async fn tear_down(&mut self) -> Result<Option<Instant>, RequestError> {
        self.note_deletion();
        self.waits = None;
        self.judgement.drop_candidate();
        self.running = None;
        let weighed = self.weigh_leftovers().await;
        self.claim();
        let recorded = self.record_earlier().await;
        if recorded.is_ok() {
            self.release_leftovers();
        }
        let read = weighed.and(recorded);
        let again = if self.object.is_release_requested {
            self.leave_behind(read.err())
        } else {
            self.releases.keep();
            read?;
            None
        };
        if !self.is_gone() && self.operated.is_empty() && self.releases.are_over() {
            self.take_finalizer().await?;
        }
        Ok(again)
    }

    pub(crate) async fn put_finalizer(&mut self) -> Result<(), RequestError> {
        let mut finalizers = self.object.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|name| name == names::FINALIZER) {
            return Ok(());
        }
        finalizers.push(names::FINALIZER.to_owned());
        self.write_finalizers(finalizers).await
    }

    async fn take_finalizer(&mut self) -> Result<(), RequestError> {
        let mut finalizers = self.object.metadata.finalizers.clone().unwrap_or_default();
        let before = finalizers.len();
        finalizers.retain(|name| name != names::FINALIZER);
        if finalizers.len() == before {
            return Ok(());
        }
        match self.write_finalizers(finalizers).await {
            Err(error) if error.is_not_found() => {
                self.existence = Existence::Gone;
                Ok(())
            }
            result => result,
        }
    }

    async fn write_finalizers(&mut self, finalizers: Vec<String>) -> Result<(), RequestError> {
        let metadata = &self.object.metadata;
        let patch = json!({ "metadata": {
            "uid": metadata.uid, "resourceVersion": metadata.resource_version, "finalizers": finalizers,
        }});
        let answer = self
            .resource
            .merge(
                Some(&self.reference.namespace),
                &self.reference.name,
                &patch,
            )
            .await?;
        self.see_answer(answer);
        Ok(())
    }
}
