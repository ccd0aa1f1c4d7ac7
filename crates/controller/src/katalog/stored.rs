//! The revisions of a Katalog's task that are stored: the accepted one, and the last good one after a restart.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_compiler::{
    compilation::{
        Compilation, DocumentSite, InputAnswer, InputRequest, MotifAnswer, SourceAnswer, UnreadFile,
    },
    compose::Artifact,
};
use orkestra_language::{document::Source, reasons::KatalogReason};
use orkestra_plan::{GroupKind, KatalogRef};
use serde_json::Value;

use super::{
    super::{
        calls::RequestError, revisions::Keeping, revisions::Revision, revisions::RevisionContent,
        revisions::StoreError, revisions::TooLarge, status::Refusal,
    },
    KatalogController,
    judge::{RunnableRevision, stored_artifacts, stored_motifs},
};
use crate::known::{known, schemas};
use orkestra_loader::compilation::blocking;
use orkestra_operator::metrics::CompiledFor;

impl KatalogController {
    /// Stores the candidate and runs it.
    pub(crate) async fn accept(&mut self) -> Result<(), RequestError> {
        self.put_finalizer().await?;
        let Some(used) = self.judgement.candidate().map(|judged| &judged.used) else {
            return Ok(());
        };
        let content = RevisionContent {
            document: self.judgement.document().tree(),
            motifs: stored_motifs(&used.motifs),
            sources: stored_artifacts(&used.artifacts),
        };
        let keeping = Keeping {
            in_force: self.object.status.revision.as_deref(),
            limit: self.object.kept,
            author: self.object.author.as_deref(),
        };
        let stored = self.revisions.store(&content, keeping).await;
        drop(content);
        match stored {
            Ok(revision) => {
                if let Some(judged) = self.judgement.take_candidate() {
                    self.start(judged, revision).await?;
                    self.judgement.note_accepted();
                    if !self.judgement.unapproved().is_empty() {
                        // What was held back is compared with what runs now.
                        self.judgement.invalidate();
                    }
                }
                Ok(())
            }
            Err(StoreError::Call(error)) => Err(error),
            Err(StoreError::TooLarge(why)) => {
                self.refuse_too_large(why);
                Ok(())
            }
        }
    }

    /// Refuses the candidate, which cannot be stored: what runs runs on.
    fn refuse_too_large(&mut self, why: TooLarge) {
        let advice = "divide the operators among several Katalogs or Komposers";
        self.judgement.refuse(Refusal {
            reason: KatalogReason::RevisionTooLarge,
            message: format!("{why}: {advice}"),
        });
    }

    /// Runs the newest stored revision that compiles, after a restart that finds the newest revision refused.
    pub(crate) async fn load_last_good(&mut self) -> Result<(), RequestError> {
        if let Some((judged, name)) = self.last_good().await? {
            self.put_finalizer().await?;
            self.start(judged, name).await?;
            self.judgement.drop_candidate();
        }
        self.looked = true;
        Ok(())
    }

    /// Returns the newest stored revision that compiles, and its name.
    pub(crate) async fn last_good(
        &self,
    ) -> Result<Option<(RunnableRevision, String)>, RequestError> {
        let stored = self.revisions.list().await?;
        for revision in stored.into_iter().rev() {
            if let Some(judged) = self.judge_stored(&revision).await {
                return Ok(Some((judged, revision.name)));
            }
        }
        Ok(None)
    }

    /// Compiles a stored revision. It was accepted once: a CRD or a check added since does not
    /// invalidate it. The permissions of the installation are checked again.
    pub(crate) async fn judge_stored(&self, revision: &Revision) -> Option<RunnableRevision> {
        let content = revision.content()?;
        let (katalog, shared) = (self.reference.clone(), Arc::clone(&self.shared.context));
        let rules = shared.rules.clone();
        let judged = blocking(katalog.to_string(), (), move || {
            let mut compilation = content.compilation(katalog)?.under(rules);
            let step = compilation.run(|request| match request {
                InputRequest::Schemas(kinds) => {
                    let schemas = schemas(&known(&shared.crds, kinds)).trusting();
                    Some(InputAnswer::Schemas(kinds.clone(), schemas))
                }
                other => Some(content.answer(other)),
            });
            shared
                .metrics
                .compiled(CompiledFor::StoredRevision, Some(&step));
            RunnableRevision::of(step, &content.document).ok()
        });
        judged.await.ok()?
    }
}

/// Returns the kinds that a stored revision names: the proof that its Katalog may have operated them.
pub(crate) fn kinds_stored(revision: &Revision) -> BTreeSet<GroupKind> {
    let compilation = revision.content().and_then(|content| {
        let name = |name: &str| {
            let name = content.document["metadata"][name].as_str();
            name.unwrap_or_default().to_owned()
        };
        content.compilation(KatalogRef::new(name("namespace"), name("name")))
    });
    let Some(mut compilation) = compilation else {
        return BTreeSet::new();
    };
    // Its sources are known; what it refers to names no kinds that it operates.
    drop(compilation.step());
    compilation.kinds().clone()
}

impl RevisionContent {
    /// Returns its compilation, with its sources; none if it cannot be read.
    fn compilation(&self, katalog: KatalogRef) -> Option<Compilation> {
        let source = Source::from_object(&self.document).ok()?;
        let mut compilation = Compilation::new(source, DocumentSite::Cluster(katalog));
        for (id, artifact) in &self.sources {
            // One that cannot be read is missing.
            if let Ok(artifact) = serde_json::from_value::<Artifact>(artifact.clone()) {
                let fetched = SourceAnswer::Fetched(Arc::new(artifact));
                compilation.answer(InputAnswer::Source(id.clone(), fetched));
            }
        }
        Some(compilation)
    }

    /// Returns what it has of an input.
    fn answer(&self, request: &InputRequest) -> InputAnswer {
        match request {
            InputRequest::Motif(name) => {
                let motif: Option<&Value> = self.motifs.get(name);
                let motif = motif.map(|motif| MotifAnswer::Object(Arc::new(motif.clone())));
                let absent = || MotifAnswer::Absent(String::new());
                InputAnswer::Motif(name.clone(), motif.unwrap_or_else(absent))
            }
            InputRequest::Source(source, _) => {
                InputAnswer::Source(source.id.clone(), SourceAnswer::Awaited(None))
            }
            InputRequest::Artifact(text) => InputAnswer::Artifact(text.clone(), Err(String::new())),
            InputRequest::File(path) => {
                let (is_missing, why) = (true, String::new());
                InputAnswer::File(path.clone(), Err(UnreadFile { is_missing, why }))
            }
            InputRequest::Schemas(kinds) => InputAnswer::Schemas(
                kinds.clone(),
                orkestra_plan::definitions::Schemas::default(),
            ),
        }
    }
}
