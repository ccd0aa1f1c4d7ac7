//! What a Katalog's task does to the world: finalizer, revision, operators.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use orkestra_core::{api::names, plan::GroupKind};
use serde_json::json;
use tokio::time::Instant;

use super::{
    super::{calls::CallError, ledger::Wanted, release::operated, status::Verdict},
    Katalog, Running, group_kind,
    judge::{Judged, judge, kinds_of},
    known::{kinds_named, schemas, storage},
    taken::{stored, take},
};

/// How soon it is looked whether this process still leads after a write that was refused.
const LOST: Duration = Duration::from_millis(500);

impl Katalog {
    /// Brings the world a step nearer to what the object says; when something failed, says when to try again.
    pub(super) async fn act(&mut self) -> Option<Instant> {
        if self.leads && !self.confirmed {
            self.inherit();
        }
        let result = if !self.leads {
            self.stand_by().await.map(|()| None)
        } else if self.is_leaving() {
            self.confirmed = true;
            self.tear_down().await.map(|()| None)
        } else if self.is_deleting() {
            self.verdict = Verdict::Deleted;
            self.confirmed = true;
            self.clear().await
        } else {
            self.follow().await.map(|()| None)
        };
        let error = match result {
            Ok(again) => {
                self.failures = 0;
                return again;
            }
            Err(error) => error,
        };
        if self.leads && !self.shared.context.leadership.leads() {
            // The write was refused with the lease: the turn that follows finds that out.
            return Some(Instant::now() + LOST);
        }
        if error.is_conflict() && self.look_again().await.is_ok() {
            return Some(Instant::now());
        }
        self.failures += 1;
        tracing::warn!(katalog = %self.reference, error = %error, failures = self.failures, "Katalog could not be followed");
        if let Verdict::Pending(why) = &mut self.verdict {
            *why = Some(error.to_string());
        }
        Some(self.after(self.failures))
    }

    /// The Katalog is wanted: its newest good revision is to run.
    async fn follow(&mut self) -> Result<(), CallError> {
        self.judge_by_schemas().await;
        if !self.confirmed {
            self.take_over();
        }
        if self.candidate.is_some() {
            self.put_finalizer().await?;
            let motifs = self.judged.as_ref().map(|basis| stored(&basis.motifs));
            let motifs = motifs.unwrap_or_default();
            let revision = self.revisions.store(&self.document.tree(), &motifs).await?;
            if let Some(judged) = self.candidate.take() {
                self.start(judged, revision).await?;
                self.verdict = Verdict::Accepted;
            }
        } else if self.running.is_none()
            && !self.looked
            && matches!(self.verdict, Verdict::Refused { .. })
        {
            self.load_last_good().await?;
        }
        self.confirmed = true;
        self.claim();
        self.release_leftovers();
        Ok(())
    }

    /// Another process leads: what it runs is made ready here, and nothing is written.
    async fn stand_by(&mut self) -> Result<(), CallError> {
        if self.is_deleting() {
            self.verdict = Verdict::Deleted;
        } else {
            self.judge_by_schemas().await;
        }
        if let Some(judged) = self.candidate.take() {
            let revision = self.object.status.revision.clone().unwrap_or_default();
            self.adopt(judged, revision);
            self.verdict = Verdict::Accepted;
        } else if self.running.is_none() && !self.looked && !self.is_leaving() {
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

    /// What a predecessor operated is this process's own.
    fn inherit(&mut self) {
        for kind in &self.object.status.operated {
            let kept = self.operated.entry(group_kind(kind));
            kept.or_insert_with(|| kind.clone());
        }
    }

    /// This process leads from now on: what it has made ready is stored as if it were new.
    fn take_over(&mut self) {
        if let Some(running) = self.running.take() {
            if self.candidate.is_none() && self.verdict == Verdict::Accepted {
                self.candidate = Some(Judged {
                    plan: running.plan,
                    disabled: running.disabled,
                    hash: running.hash,
                });
                self.verdict = Verdict::Pending(None);
            }
            // What was good once is found among the revisions, as after a restart.
            self.looked = false;
        }
    }

    /// Runs a revision that is stored. What it operates is written into the status first, so that a restart that finds
    /// it changed knows what to release.
    async fn start(&mut self, judged: Judged, revision: String) -> Result<(), CallError> {
        for operator in &judged.plan.operators {
            let kind = operated(&operator.resource);
            self.releasing.retain(|other, release| {
                release.under_way || group_kind(other) != group_kind(&kind)
            });
            self.operated.insert(group_kind(&kind), kind);
        }
        if let Err(error) = self.write_operated().await {
            self.candidate = Some(judged);
            return Err(error);
        }
        tracing::info!(katalog = %self.reference, revision, operators = judged.plan.operators.len(), "revision runs");
        self.adopt(judged, revision);
        Ok(())
    }

    fn adopt(&mut self, judged: Judged, revision: String) {
        let Judged {
            plan,
            disabled,
            hash,
        } = judged;
        self.running = Some(Running {
            revision,
            hash,
            plan,
            disabled,
        });
    }

    /// After a restart that finds the newest revision refused: the newest stored one that compiles runs.
    pub(super) async fn load_last_good(&mut self) -> Result<(), CallError> {
        if let Some((judged, name)) = self.last_good().await? {
            self.put_finalizer().await?;
            self.start(judged, name).await?;
            self.candidate = None;
        }
        self.looked = true;
        Ok(())
    }

    /// The newest stored revision that compiles, and its name.
    async fn last_good(&self) -> Result<Option<(Judged, String)>, CallError> {
        let stored = self.revisions.list().await?;
        Ok(stored.into_iter().rev().find_map(|revision| {
            let motif = |name: &str| {
                let motif = revision.motifs.get(name).cloned();
                motif.map(Arc::new).ok_or_else(String::new)
            };
            let taken = take(&revision.document, &motif);
            let crds = self.crds_of(&kinds_named(&revision.document), &taken.asked);
            // It was accepted once: a definition or a check that came since takes nothing away.
            let schemas = schemas(&crds).trusting();
            let judged = judge(&self.reference, &revision.document, &taken, &schemas).ok()?;
            Some((judged, revision.name))
        }))
    }

    /// Tells the supervisor what this Katalog claims and runs.
    pub(super) fn claim(&mut self) {
        if self.is_leaving() {
            if !std::mem::replace(&mut self.forgotten, true) {
                self.shared.supervisor.forget(&self.reference);
            }
            return;
        }
        let claims = self.wanted_kinds();
        let wanted = Wanted {
            seniority: self.seniority(),
            storage: storage(&self.shared.context.crds, &claims),
            plan: self
                .running
                .as_ref()
                .map(|running| Arc::clone(&running.plan)),
            stored: self.leads && self.confirmed,
            claims,
        };
        // Telling the supervisor wakes every Katalog.
        if self.claimed.as_ref() != Some(&wanted) {
            self.claimed = Some(wanted.clone());
            self.shared.supervisor.want(&self.reference, wanted);
        }
    }

    /// Kinds of what runs and of what is about to run; while there is neither, what ran before the restart: a Katalog
    /// that has nothing good lets go of nothing. One that is being deleted wants none.
    pub(super) fn wanted_kinds(&self) -> BTreeSet<GroupKind> {
        if self.is_leaving() {
            return BTreeSet::new();
        }
        let plans = [
            self.running.as_ref().map(|running| &running.plan),
            self.candidate.as_ref().map(|judged| &judged.plan),
        ];
        let mut kinds: BTreeSet<_> = plans
            .into_iter()
            .flatten()
            .flat_map(|plan| kinds_of(plan))
            .collect();
        if self.running.is_none() && self.candidate.is_none() {
            kinds.extend(self.operated.keys().cloned());
        }
        kinds
    }

    /// The Katalog is not wanted: everything it operated is let go, then it itself.
    async fn tear_down(&mut self) -> Result<(), CallError> {
        self.verdict = Verdict::Deleted;
        (self.candidate, self.running) = (None, None);
        self.claim();
        self.release_leftovers();
        if !self.gone && self.operated.is_empty() && self.releases.is_empty() {
            self.take_finalizer().await?;
        }
        Ok(())
    }

    async fn put_finalizer(&mut self) -> Result<(), CallError> {
        let mut finalizers = self.object.metadata.finalizers.clone().unwrap_or_default();
        if finalizers.iter().any(|name| name == names::FINALIZER) {
            return Ok(());
        }
        finalizers.push(names::FINALIZER.to_owned());
        self.write_finalizers(finalizers).await
    }

    async fn take_finalizer(&mut self) -> Result<(), CallError> {
        let mut finalizers = self.object.metadata.finalizers.clone().unwrap_or_default();
        let before = finalizers.len();
        finalizers.retain(|name| name != names::FINALIZER);
        if finalizers.len() == before {
            return Ok(());
        }
        match self.write_finalizers(finalizers).await {
            Err(error) if error.is_not_found() => {
                self.gone = true;
                Ok(())
            }
            result => result,
        }
    }

    async fn write_finalizers(&mut self, finalizers: Vec<String>) -> Result<(), CallError> {
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
