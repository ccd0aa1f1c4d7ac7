//! The input of a Katalog's verdict, and the effects of the verdict.
//!
//! ```text
//!  object ── subject ──► judge ──┬─ good ─────► candidate, pending ── stored, or run as stored ──► accepted
//!                                ├─ it runs ──► accepted
//!                                └─ refused ──► no candidate
//! ```

use std::{collections::BTreeSet, sync::Arc};

use orkestra_core::{
    compose::SourceRequest, definitions::Schemas, plan::GroupKind, reasons::KatalogReason,
    reconcile::crd::CrdRecord,
};
use serde_json::{Map, Value};

use super::{
    super::{
        calls::RequestError, object::Document, sources::approval::Unapproved, status::Refusal,
        status::Verdict,
    },
    KatalogController, Running,
    judge::{RunnableRevision, judge, permitted},
    used_motifs::{Composed, RequestedMotifs, UsedMotifs, stored, take},
};
use crate::meta::{known::kinds_named, known::known, known::schemas, known::whole_schemas};

/// The verdict on a Katalog's document, and what follows from it.
#[derive(Debug)]
pub(super) struct Judgement {
    /// The document that was judged last.
    document: Arc<Document>,
    /// Its generation.
    generation: Option<i64>,
    /// The subject of the verdict; none before it was judged by the full schemas.
    subject: Option<VerdictSubject>,
    verdict: Verdict,
    /// Compiled and not running yet.
    candidate: Option<RunnableRevision>,
    /// The sources that it is composed from.
    requests: Vec<SourceRequest>,
    /// Revisions of sources that need additional permissions.
    unapproved: Vec<Unapproved>,
}

/// The subject of a verdict.
#[derive(Debug, PartialEq)]
struct VerdictSubject {
    generation: Option<i64>,
    /// The CRDs of the kinds that the document and its Motifs name.
    crds: Vec<Arc<CrdRecord>>,
    /// The Motifs that it uses.
    motifs: RequestedMotifs,
    /// The kinds that its sources name.
    kinds: BTreeSet<GroupKind>,
    /// The state of its sources.
    sources: Vec<(String, String)>,
    /// The digests that its annotation approves.
    approved: BTreeSet<String>,
}

impl Judgement {
    /// The judgement of an object before its document is judged.
    pub(super) fn pending() -> Self {
        Self {
            document: Arc::default(),
            generation: None,
            subject: None,
            verdict: Verdict::Pending(None),
            candidate: None,
            requests: Vec::new(),
            unapproved: Vec::new(),
        }
    }

    pub(super) fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the generation of the verdict.
    pub(super) fn generation(&self) -> Option<i64> {
        self.generation
    }

    pub(super) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the revision that is compiled and not running yet.
    pub(super) fn candidate(&self) -> Option<&RunnableRevision> {
        self.candidate.as_ref()
    }

    /// Returns the sources that it is composed from.
    pub(super) fn requests(&self) -> &[SourceRequest] {
        &self.requests
    }

    /// Returns the revisions of sources that need additional permissions.
    pub(super) fn unapproved(&self) -> &[Unapproved] {
        &self.unapproved
    }

    /// Returns the Motifs that it uses, as they are stored.
    pub(super) fn motifs(&self) -> Map<String, Value> {
        let subject = self.subject.as_ref();
        let motifs = subject.map(|subject| stored(&subject.motifs));
        motifs.unwrap_or_default()
    }

    /// True if it was judged by the full schemas.
    pub(super) fn is_final(&self) -> bool {
        self.subject.is_some()
    }

    /// True if the document is refused and there is no candidate.
    pub(super) fn is_refused(&self) -> bool {
        self.candidate.is_none() && matches!(self.verdict, Verdict::Refused { .. })
    }

    /// Makes the verdict outdated: the next iteration judges again.
    pub(super) fn invalidate(&mut self) {
        self.subject = None;
    }

    /// Keeps one of two equal documents.
    pub(super) fn share_document(&mut self, document: &Arc<Document>) {
        if **document == *self.document {
            self.document = Arc::clone(document);
        }
    }

    /// Takes the candidate, which is about to run: it is accepted once it does.
    pub(super) fn take_candidate(&mut self) -> Option<RunnableRevision> {
        self.candidate.take()
    }

    /// Restores a candidate that was taken and does not run.
    pub(super) fn restore(&mut self, candidate: Option<RunnableRevision>) {
        self.candidate = candidate;
    }

    /// Drops the candidate: a stored revision runs instead, or none does.
    pub(super) fn drop_candidate(&mut self) {
        self.candidate = None;
    }

    /// Notes that the candidate runs.
    pub(super) fn note_accepted(&mut self) {
        self.verdict = Verdict::Accepted;
    }

    /// Notes that the object of this generation is being deleted.
    pub(super) fn note_deletion(&mut self, generation: Option<i64>) {
        self.verdict = Verdict::Deleted;
        self.generation = generation;
    }

    /// Notes why the candidate could not be stored yet.
    pub(super) fn note_failure(&mut self, error: &RequestError) {
        if let Verdict::Pending(why) = &mut self.verdict {
            *why = Some(error.to_string());
        }
    }

    /// Refuses the document; the running revision stays.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.candidate = None;
        self.verdict = Verdict::refused(refusal);
    }

    /// Makes the accepted revision the candidate again, to be stored as if it were new.
    pub(super) fn reopen(&mut self, running: Running) {
        if self.candidate.is_none() && self.verdict == Verdict::Accepted {
            self.candidate = Some(RunnableRevision {
                plan: running.plan,
                disabled: running.disabled,
                hash: running.hash,
                artifacts: running.artifacts,
                sources: running.sources,
            });
            self.verdict = Verdict::Pending(None);
        }
    }

    /// Makes a revision that compiles the candidate, unless it already runs.
    fn note_good(&mut self, judged: RunnableRevision, running: Option<&Running>) {
        let same = |running: &Running| {
            running.hash == judged.hash
                && orkestra_core::plan::diff(&running.plan, &judged.plan).is_empty()
        };
        if running.is_some_and(same) {
            self.candidate = None;
            self.verdict = Verdict::Accepted;
        } else {
            self.candidate = Some(judged);
            self.verdict = Verdict::Pending(None);
        }
    }
}

impl KatalogController {
    /// Judges the object by the CRD records, so that it can claim its kinds at once.
    pub(super) fn judge(&mut self) {
        if !self.is_deleting() {
            let (subject, tree, taken) = self.subject();
            self.judge_against((&tree, &taken), &schemas(&subject.crds));
        }
    }

    /// Judges the object by the full schemas of its kinds, unless that was done before.
    pub(super) async fn judge_by_schemas(&mut self) {
        if self.is_judged() {
            return;
        }
        let (subject, tree, taken) = self.subject();
        let schemas = whole_schemas(&self.shared.context.cluster, &subject.crds).await;
        self.judge_against((&tree, &taken), &schemas);
        self.judgement.subject = Some(subject);
    }

    /// True if the verdict is current: while the document and its Motifs are unchanged, it refers to the same Motifs.
    fn is_judged(&self) -> bool {
        let Some(judged) = &self.judgement.subject else {
            return false;
        };
        let names = judged.motifs.iter().map(|(name, _)| name.clone());
        let motifs: RequestedMotifs = names
            .map(|name| {
                let motif = self.motif(&name).ok();
                (name, motif)
            })
            .collect();
        let now = VerdictSubject {
            generation: self.object.metadata.generation,
            crds: self.crds_of(&self.kinds(&judged.kinds), &motifs),
            motifs,
            kinds: judged.kinds.clone(),
            sources: self.source_states(),
            approved: self.object.approved.clone(),
        };
        *judged == now
    }

    /// Returns the kinds that the document or its sources name.
    fn kinds(&self, of_sources: &BTreeSet<GroupKind>) -> BTreeSet<GroupKind> {
        let kinds = &self.judgement.document.kinds;
        kinds.union(of_sources).cloned().collect()
    }

    fn motif(&self, name: &str) -> Result<Arc<Value>, String> {
        self.shared.motifs.get(&self.reference.namespace, name)
    }

    /// Returns the subject of a judgement, the document, and what the Katalog uses from Motifs.
    fn subject(&mut self) -> (VerdictSubject, Value, UsedMotifs) {
        self.judgement.document = Arc::clone(&self.object.document);
        self.judgement.generation = self.object.metadata.generation;
        let tree = self.judgement.document.tree();
        // Read before the artifacts: one that arrives in between is judged again.
        let sources = self.source_states();
        let taken = take(&tree, &self.artifacts(), &|name| self.motif(name));
        let kinds = taken.composed.as_ref().and_then(Composed::resolved);
        let kinds = kinds.map(|resolved| kinds_named(&resolved.to_json()));
        let kinds = kinds.unwrap_or_default();
        let requests = taken.composed.as_ref().map(|composed| &composed.requests);
        self.judgement.requests = requests.cloned().unwrap_or_default();
        let subject = VerdictSubject {
            generation: self.object.metadata.generation,
            crds: self.crds_of(&self.kinds(&kinds), &taken.asked),
            motifs: taken.asked.clone(),
            kinds,
            sources,
            approved: self.object.approved.clone(),
        };
        (subject, tree, taken)
    }

    /// Returns the CRDs of the kinds that a document and its Motifs name.
    pub(super) fn crds_of(
        &self,
        kinds: &BTreeSet<GroupKind>,
        motifs: &RequestedMotifs,
    ) -> Vec<Arc<CrdRecord>> {
        let motifs = motifs.iter().filter_map(|(_, motif)| motif.as_deref());
        let mut named = kinds.clone();
        named.extend(motifs.flat_map(kinds_named));
        known(&self.shared.context.crds, &named)
    }

    fn judge_against(&mut self, (document, taken): (&Value, &UsedMotifs), schemas: &Schemas) {
        if let Some(why) = &self.judgement.document.unread {
            let message = format!("it cannot be read: {why}");
            let reason = KatalogReason::InvalidRevision;
            self.judgement.refuse(Refusal { reason, message });
            return;
        }
        let judged = judge(&self.reference, document, taken, schemas);
        let judged = judged.and_then(|judged| {
            let locks = taken.composed.as_ref().map(|composed| &composed.locks);
            self.judgement.unapproved = self.find_unapproved(&judged, locks);
            if self.judgement.unapproved.is_empty() {
                return Ok(judged);
            }
            // The earlier revisions of these sources stay, and the others roll on.
            let artifacts = self.approved_artifacts();
            let taken = take(document, &artifacts, &|name| self.motif(name));
            judge(&self.reference, document, &taken, schemas)
        });
        let judged = judged.and_then(|judged| permitted(&self.shared.context.children, judged));
        match judged.map_err(|refusal| self.explain(refusal)) {
            Ok(judged) => {
                let default = self.shared.context.admission;
                let judged = judged.with_admission(default);
                self.judgement.note_good(judged, self.running.as_ref());
            }
            Err(refusal) => {
                if refusal.reason != KatalogReason::Fetching {
                    tracing::info!(katalog = %self.reference, reason = refusal.reason.as_str(), problems = refusal.message, "revision rejected");
                }
                self.judgement.refuse(refusal);
            }
        }
    }
}

#[cfg(test)]
mod tests;
