//! What a Katalog's task does to the world: finalizer, revision, operators, release.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_core::{
    api::{OperatedKind, names},
    plan::{GroupKind, Schemas},
    reconcile::crd::CrdRecord,
    value,
};
use serde_json::json;
use tokio::{task::JoinError, time::Instant};

use super::{
    super::{
        calls::CallError,
        ledger::Wanted,
        release::{ReleaseError, Released, operated, release_kind},
        revisions::data,
        status::Verdict,
        supervisor::Holding,
    },
    Katalog, Release, Running, Subject, group_kind,
    judge::{Judged, judge, kinds_of},
    known::{known, schemas, storage, whole_schemas},
    taken::{Asked, Taken, stored, take},
};

impl Katalog {
    /// Brings the world a step nearer to what the object says; when something failed, says when to try again.
    pub(super) async fn act(&mut self) -> Option<Instant> {
        let result = if self.is_deleting() {
            self.tear_down().await
        } else {
            self.follow().await
        };
        let Err(error) = result else {
            self.failures = 0;
            return None;
        };
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
        if self.candidate.is_some() {
            self.put_finalizer().await?;
            let motifs = self.judged.as_ref().map(|basis| stored(&basis.motifs));
            let motifs = motifs.unwrap_or_default();
            let revision = self.revisions.store(&self.document, &motifs).await?;
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
        self.claim();
        self.release_leftovers();
        Ok(())
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
        let Judged {
            plan,
            disabled,
            hash,
        } = judged;
        tracing::info!(katalog = %self.reference, revision, operators = plan.operators.len(), "revision runs");
        self.running = Some(Running {
            revision,
            hash,
            plan,
            disabled,
        });
        Ok(())
    }

    /// After a restart that finds the newest revision refused: the newest stored one that compiles runs.
    async fn load_last_good(&mut self) -> Result<(), CallError> {
        let stored = self.revisions.list().await?;
        let good = stored.into_iter().rev().find_map(|revision| {
            let motif = |name: &str| {
                let motif = revision.motifs.get(name).cloned();
                motif.map(Arc::new).ok_or_else(String::new)
            };
            let taken = take(&revision.document, &motif);
            let crds = self.crds_of(&revision.document, &taken.asked);
            // It was accepted once: a definition or a check that came since takes nothing away.
            let schemas = schemas(&crds).trusting();
            let judged = judge(&self.reference, &revision.document, &taken, &schemas).ok()?;
            Some((judged, revision.name))
        });
        if let Some((judged, name)) = good {
            self.put_finalizer().await?;
            self.start(judged, name).await?;
            self.candidate = None;
        }
        self.looked = true;
        Ok(())
    }

    /// Tells the supervisor what this Katalog claims and runs.
    pub(super) fn claim(&mut self) {
        if self.is_deleting() {
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
    fn wanted_kinds(&self) -> BTreeSet<GroupKind> {
        if self.is_deleting() {
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

    /// Lets go of what was operated and is not wanted.
    fn release_leftovers(&mut self) {
        let wanted = self.wanted_kinds();
        let stale: Vec<_> = self
            .operated
            .iter()
            .filter(|(kind, _)| !wanted.contains(*kind))
            .map(|(_, kind)| kind.clone())
            .collect();
        for kind in stale {
            let release = self.releasing.entry(kind.clone()).or_default();
            if release.under_way || release.retry_at.is_some_and(|at| at > Instant::now()) {
                continue;
            }
            match self.shared.supervisor.hold(&group_kind(&kind)) {
                Holding::Busy => {}
                Holding::Claimed(successor) => {
                    tracing::info!(katalog = %self.reference, kind = kind.kind, %successor, "kind goes to another Katalog");
                    self.releasing.remove(&kind);
                    self.operated.remove(&group_kind(&kind));
                }
                Holding::Held(held) => {
                    release.under_way = true;
                    let client = self.shared.context.wire.client().clone();
                    self.releases.spawn(async move {
                        let result = release_kind(&client, &kind).await;
                        drop(held);
                        (kind, result)
                    });
                }
            }
        }
    }

    /// Takes in how a release ended.
    pub(super) fn note_release(
        &mut self,
        done: Result<(OperatedKind, Result<Released, ReleaseError>), JoinError>,
    ) {
        match done {
            Ok((kind, Ok(released))) => {
                let Released {
                    resources,
                    children,
                } = released;
                tracing::info!(katalog = %self.reference, kind = kind.kind, resources, children, "kind is released");
                self.releasing.remove(&kind);
                // An entry of the same kind may have come back meanwhile.
                if !self.wanted_kinds().contains(&group_kind(&kind)) {
                    self.operated.remove(&group_kind(&kind));
                }
            }
            Ok((kind, Err(error))) => {
                tracing::warn!(katalog = %self.reference, kind = kind.kind, error = %error, "kind could not be released");
                let failures = self
                    .releasing
                    .get(&kind)
                    .map_or(0, |release| release.failures)
                    + 1;
                let retry_at = Some(self.after(failures));
                self.releasing.insert(
                    kind,
                    Release {
                        under_way: false,
                        failures,
                        problem: Some(error.to_string()),
                        retry_at,
                    },
                );
            }
            Err(error) => {
                tracing::error!(katalog = %self.reference, error = %error, "release panicked");
                let retry_at = Some(self.after(1));
                for release in self
                    .releasing
                    .values_mut()
                    .filter(|release| release.under_way)
                {
                    *release = Release {
                        under_way: false,
                        failures: 1,
                        problem: Some("internal error".to_owned()),
                        retry_at,
                    };
                }
            }
        }
    }

    /// When the next release is tried again.
    pub(super) fn next_release(&self) -> Option<Instant> {
        self.releasing
            .values()
            .filter(|release| !release.under_way)
            .filter_map(|release| release.retry_at)
            .min()
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

    /// Judges the object by what the records say of CRDs, so that it can claim its kinds at once.
    pub(super) fn judge(&mut self) {
        if !self.is_deleting() {
            let (subject, taken) = self.subject();
            self.judge_against(&taken, &schemas(&subject.crds));
        }
    }

    /// Judges the object by the whole schemas of its kinds, unless it was judged by them before.
    async fn judge_by_schemas(&mut self) {
        if self.is_judged() {
            return;
        }
        let (subject, taken) = self.subject();
        let schemas = whole_schemas(&self.shared.context.wire, &subject.crds).await;
        self.judge_against(&taken, &schemas);
        self.judged = Some(subject);
    }

    /// Whether the verdict is about what there is: as long as the document and its Motifs are the same, the same Motifs are
    /// asked for.
    fn is_judged(&self) -> bool {
        let Some(judged) = &self.judged else {
            return false;
        };
        let names = judged.motifs.iter().map(|(name, _)| name.clone());
        let motifs: Asked = names
            .map(|name| {
                let motif = self.motif(&name).ok();
                (name, motif)
            })
            .collect();
        let now = Subject {
            generation: self.object.metadata.generation,
            crds: self.crds_of(&self.document, &motifs),
            motifs,
        };
        *judged == now
    }

    fn motif(&self, name: &str) -> Result<Arc<serde_json::Value>, String> {
        self.shared.motifs.get(&self.reference.namespace, name)
    }

    /// What a judgement is about, and what the Katalog takes from Motifs.
    fn subject(&mut self) -> (Subject, Taken) {
        let generation = self.object.metadata.generation;
        if self
            .judged
            .as_ref()
            .is_none_or(|judged| judged.generation != generation)
        {
            self.document = Arc::new(serde_json::to_value(&*self.object).unwrap_or_default());
        }
        let taken = take(&self.document, &|name| self.motif(name));
        let subject = Subject {
            generation,
            crds: self.crds_of(&self.document, &taken.asked),
            motifs: taken.asked.clone(),
        };
        (subject, taken)
    }

    /// The CRDs of the kinds that a document and its Motifs name.
    fn crds_of(&self, document: &serde_json::Value, motifs: &Asked) -> Vec<Arc<CrdRecord>> {
        let motifs = motifs.iter().filter_map(|(_, motif)| motif.as_deref());
        known(
            &self.shared.context.crds,
            std::iter::once(document).chain(motifs),
        )
    }

    fn judge_against(&mut self, taken: &Taken, schemas: &Schemas) {
        match judge(&self.reference, &self.document, taken, schemas) {
            Ok(judged) => self.note_good(judged),
            Err(refusal) => {
                tracing::info!(katalog = %self.reference, reason = refusal.reason, problems = refusal.message, "revision is refused");
                self.candidate = None;
                self.verdict = Verdict::Refused {
                    reason: refusal.reason,
                    message: refusal.message,
                };
            }
        }
    }

    /// A revision that compiles is a candidate, unless it is what runs.
    fn note_good(&mut self, judged: Judged) {
        let same = |running: &Running| {
            running.hash == judged.hash
                && orkestra_core::plan::diff(&running.plan, &judged.plan).is_empty()
        };
        if self.running.as_ref().is_some_and(same) {
            self.candidate = None;
            self.verdict = Verdict::Accepted;
        } else {
            self.candidate = Some(judged);
            self.verdict = Verdict::Pending(None);
        }
    }
}

/// Hash of what of a document, and of the Motifs that it takes, matters to what runs.
pub(super) fn document_hash(document: &serde_json::Value, motifs: &Asked) -> String {
    value::hash(&value::Node::from(&data(document, &stored(motifs))))
}
