//! The input of a Katalog's verdict, and the effects of the verdict.

use std::{collections::BTreeSet, sync::Arc};

use orkestra_core::{
    definitions::Schemas, plan::GroupKind, reasons::KatalogReason, reconcile::crd::CrdRecord,
};
use serde_json::Value;

use super::{
    super::status::Verdict,
    KatalogController, Running, VerdictSubject,
    judge::{RunnableRevision, judge, permitted},
    used_motifs::{Composed, RequestedMotifs, UsedMotifs, take},
};
use crate::meta::{known::kinds_named, known::known, known::schemas, known::whole_schemas};

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
        self.judged = Some(subject);
    }

    /// True if the verdict is current: while the document and its Motifs are unchanged, it refers to the same Motifs.
    fn is_judged(&self) -> bool {
        let Some(judged) = &self.judged else {
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
        self.document.kinds.union(of_sources).cloned().collect()
    }

    fn motif(&self, name: &str) -> Result<Arc<Value>, String> {
        self.shared.motifs.get(&self.reference.namespace, name)
    }

    /// Returns the subject of a judgement, the document, and what the Katalog uses from Motifs.
    fn subject(&mut self) -> (VerdictSubject, Value, UsedMotifs) {
        self.document = Arc::clone(&self.object.document);
        self.observed = self.object.metadata.generation;
        let tree = self.document.tree();
        // Read before the artifacts: one that arrives in between is judged again.
        let sources = self.source_states();
        let taken = take(&tree, &self.artifacts(), &|name| self.motif(name));
        let kinds = taken.composed.as_ref().and_then(Composed::resolved);
        let kinds = kinds.map(|resolved| kinds_named(&resolved.to_json()));
        let kinds = kinds.unwrap_or_default();
        let requests = taken.composed.as_ref().map(|composed| &composed.requests);
        self.requests = requests.cloned().unwrap_or_default();
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
        if let Some(why) = &self.document.unread {
            self.candidate = None;
            self.verdict = Verdict::Refused {
                reason: KatalogReason::InvalidRevision,
                message: format!("it cannot be read: {why}"),
            };
            return;
        }
        let judged = judge(&self.reference, document, taken, schemas);
        let judged = judged.and_then(|judged| {
            let locks = taken.composed.as_ref().map(|composed| &composed.locks);
            self.unapproved = self.find_unapproved(&judged, locks);
            if self.unapproved.is_empty() {
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
                self.note_good(judged.with_admission(default));
            }
            Err(refusal) if refusal.reason == KatalogReason::Fetching => {
                self.candidate = None;
                self.verdict = Verdict::refused(refusal);
            }
            Err(refusal) => {
                tracing::info!(katalog = %self.reference, reason = refusal.reason.as_str(), problems = refusal.message, "revision rejected");
                self.candidate = None;
                self.verdict = Verdict::refused(refusal);
            }
        }
    }

    /// Makes a revision that compiles the candidate, unless it already runs.
    fn note_good(&mut self, judged: RunnableRevision) {
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
