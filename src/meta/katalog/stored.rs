//! The revisions of a Katalog's task that are stored: the accepted one, and the last good one after a restart.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_core::{plan::GroupKind, reasons::KatalogReason};
use serde_json::Value;

use super::{
    super::{
        calls::RequestError, revisions::Revision, revisions::RevisionContent,
        revisions::StoreError, revisions::TooLarge, status::Refusal,
    },
    KatalogController, composed,
    judge::{RunnableRevision, judge, permitted},
    used_motifs::{Composed, UsedMotifs, take},
};
use crate::meta::{known::kinds_named, known::schemas};

impl KatalogController {
    /// Stores the candidate and runs it.
    pub(super) async fn accept(&mut self) -> Result<(), RequestError> {
        self.put_finalizer().await?;
        let artifacts = self.judgement.candidate().map(|judged| &judged.artifacts);
        let content = RevisionContent {
            document: self.judgement.document().tree(),
            motifs: self.judgement.motifs(),
            sources: composed::stored(artifacts),
        };
        let in_force = self.object.status.revision.as_deref();
        let stored = self.revisions.store(&content, in_force).await;
        drop(content);
        match stored {
            Ok(revision) => {
                if let Some(judged) = self.judgement.take_candidate() {
                    self.start(judged, revision).await?;
                    self.judgement.note_accepted();
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
        tracing::info!(katalog = %self.reference, %why, "revision rejected");
        self.judgement.refuse(Refusal {
            reason: KatalogReason::RevisionTooLarge,
            message: format!("{why}: {advice}"),
        });
    }

    /// Runs the newest stored revision that compiles, after a restart that finds the newest revision refused.
    pub(super) async fn load_last_good(&mut self) -> Result<(), RequestError> {
        if let Some((judged, name)) = self.last_good().await? {
            self.put_finalizer().await?;
            self.start(judged, name).await?;
            self.judgement.drop_candidate();
        }
        self.looked = true;
        Ok(())
    }

    /// Returns the newest stored revision that compiles, and its name.
    pub(super) async fn last_good(
        &self,
    ) -> Result<Option<(RunnableRevision, String)>, RequestError> {
        let stored = self.revisions.list().await?;
        Ok(stored.into_iter().rev().find_map(|revision| {
            let judged = self.judge_stored(&revision)?;
            Some((judged, revision.name))
        }))
    }

    /// Compiles a stored revision. It was accepted once: a CRD or a check added since does not
    /// invalidate it. The permissions of the installation are checked again.
    pub(super) fn judge_stored(&self, revision: &Revision) -> Option<RunnableRevision> {
        let (document, taken, kinds) = unpack(revision)?;
        let crds = self.crds_of(&kinds, &taken.asked);
        let schemas = schemas(&crds).trusting();
        let judged = judge(&self.reference, &document, &taken, &schemas).ok()?;
        let judged = permitted(&self.shared.context.children, judged).ok()?;
        Some(judged.with_admission(self.shared.context.admission))
    }
}

/// Returns the kinds that a stored revision names: the proof that its Katalog may have operated them.
pub(crate) fn kinds_stored(revision: &Revision) -> BTreeSet<GroupKind> {
    unpack(revision)
        .map(|(_, _, kinds)| kinds)
        .unwrap_or_default()
}

/// Returns the document of a stored revision, what it uses from elsewhere, and the kinds that both name.
fn unpack(revision: &Revision) -> Option<(Value, UsedMotifs, BTreeSet<GroupKind>)> {
    let RevisionContent {
        document,
        motifs,
        sources,
    } = revision.content()?;
    let motif = |name: &str| {
        let motif = motifs.get(name).cloned();
        motif.map(Arc::new).ok_or_else(String::new)
    };
    let artifacts = composed::read(&sources);
    let taken = take(&document, &artifacts, &motif);
    let mut kinds = kinds_named(&document);
    if let Some(resolved) = taken.composed.as_ref().and_then(Composed::resolved) {
        kinds.extend(kinds_named(&resolved.to_json()));
    }
    Some((document, taken, kinds))
}
