//! The input of a Katalog's verdict, and the effects of the verdict.
//!
//! ```text
//!  object ── subject ──► judge ──┬─ good ─────► candidate, pending ── stored, or run as stored ──► accepted
//!                                ├─ it runs ──► accepted
//!                                └─ refused ──► no candidate
//! ```

mod inputs;

use std::{collections::BTreeSet, sync::Arc};

use orkestra_compiler::{
    compilation::{
        Compilation, CompilationRules, CompilationStep, DocumentSite, InputAnswer, SourceAnswer,
        Unapproved, UsedMotifs,
    },
    compose::SourceRequest,
};
use orkestra_engine::reconcile::crd::CrdRecord;
use orkestra_language::{document::Source, reasons::KatalogReason};
use orkestra_plan::GroupKind;
use serde_json::Value;
use tokio::task::JoinError;

use super::{
    super::{
        calls::RequestError, object::Document, sources::KomposerSources, status::Refusal,
        status::Verdict,
    },
    KatalogController, Running,
    judge::{RunnableRevision, failed, invalid},
};
use crate::known::known;
use inputs::ObjectInputs;
use orkestra_loader::compilation::{DriveError, blocking, finish};
use orkestra_operator::metrics::CompiledFor;

/// The verdict on a Katalog's document, and what follows from it.
#[derive(Debug)]
pub(crate) struct Judgement {
    /// The document that was judged last.
    document: Arc<Document>,
    /// Its generation.
    generation: Option<i64>,
    /// The subject of the verdict; none before it was judged.
    subject: Option<VerdictSubject>,
    verdict: Verdict,
    /// Compiled and not running yet.
    candidate: Option<RunnableRevision>,
    /// The revision whose definitions cannot be applied.
    held: Option<HeldRevision>,
    /// The sources that it is composed from.
    requests: Vec<SourceRequest>,
    /// Revisions of sources that need additional permissions.
    unapproved: Vec<Unapproved>,
}

/// A revision whose definitions cannot be applied.
#[derive(Debug)]
enum HeldRevision {
    /// It does not run.
    Candidate(Box<RunnableRevision>),
    /// It runs: another client changed its definitions.
    Running,
}

/// The subject of a verdict: the inputs of its compilation, which is repeated when one of them changes.
#[derive(Debug, PartialEq)]
struct VerdictSubject {
    generation: Option<i64>,
    /// The kinds that the document, its Motifs and its sources name.
    kinds: BTreeSet<GroupKind>,
    /// Their CRDs.
    crds: Vec<Arc<CrdRecord>>,
    /// The Motifs that it uses.
    motifs: UsedMotifs,
    /// The state of its sources.
    sources: Vec<(String, String)>,
    /// The digests that its annotation approves.
    approved: BTreeSet<String>,
}

impl Judgement {
    /// The judgement of an object before its document is judged.
    pub(crate) fn pending() -> Self {
        Self {
            document: Arc::default(),
            generation: None,
            subject: None,
            verdict: Verdict::Pending(None),
            candidate: None,
            held: None,
            requests: Vec::new(),
            unapproved: Vec::new(),
        }
    }

    pub(crate) fn document(&self) -> &Document {
        &self.document
    }

    /// Returns the generation of the verdict.
    pub(crate) fn generation(&self) -> Option<i64> {
        self.generation
    }

    pub(crate) fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// Returns the revision that is compiled and not running yet.
    pub(crate) fn candidate(&self) -> Option<&RunnableRevision> {
        self.candidate.as_ref()
    }

    /// Returns the sources that it is composed from.
    pub(crate) fn requests(&self) -> &[SourceRequest] {
        &self.requests
    }

    /// Returns the revisions of sources that need additional permissions.
    pub(crate) fn unapproved(&self) -> &[Unapproved] {
        &self.unapproved
    }

    /// True if the verdict is on the inputs as they are known.
    pub(crate) fn is_final(&self) -> bool {
        self.subject.is_some()
    }

    /// True if the document is refused and there is no candidate.
    pub(crate) fn is_refused(&self) -> bool {
        self.candidate.is_none() && matches!(self.verdict, Verdict::Refused { .. })
    }

    /// Makes the verdict outdated: the next iteration judges again.
    pub(crate) fn invalidate(&mut self) {
        self.subject = None;
    }

    /// Keeps one of two equal documents.
    pub(crate) fn share_document(&mut self, document: &Arc<Document>) {
        if **document == *self.document {
            self.document = Arc::clone(document);
        }
    }

    /// Takes the candidate, which is about to run: it is accepted once it does.
    pub(crate) fn take_candidate(&mut self) -> Option<RunnableRevision> {
        self.candidate.take()
    }

    /// Restores a candidate that was taken and does not run.
    pub(crate) fn restore(&mut self, candidate: Option<RunnableRevision>) {
        self.candidate = candidate;
    }

    /// Drops the candidate: a stored revision runs instead, or none does.
    pub(crate) fn drop_candidate(&mut self) {
        self.candidate = None;
    }

    /// Notes that the candidate runs.
    pub(crate) fn note_accepted(&mut self) {
        self.verdict = Verdict::Accepted;
    }

    /// Notes that the object of this generation is being deleted.
    pub(crate) fn note_deletion(&mut self, generation: Option<i64>) {
        self.verdict = Verdict::Deleted;
        self.generation = generation;
    }

    /// Notes why the candidate could not be stored yet.
    pub(crate) fn note_failure(&mut self, error: &RequestError) {
        if let Verdict::Pending(why) = &mut self.verdict {
            *why = Some(error.to_string());
        }
    }

    /// Refuses the document; the running revision stays.
    pub(crate) fn refuse(&mut self, refusal: Refusal) {
        self.set_aside(Verdict::refused(refusal));
    }

    /// Notes a verdict by which the document does not run; the running revision stays.
    fn set_aside(&mut self, verdict: Verdict) {
        (self.candidate, self.held) = (None, None);
        self.verdict = verdict;
    }

    /// Holds the candidate back; the running revision stays.
    pub(crate) fn hold(&mut self, refusal: Refusal) {
        let held = self.candidate.take();
        let held = held.map_or(HeldRevision::Running, |held| {
            HeldRevision::Candidate(Box::new(held))
        });
        self.refuse(refusal);
        self.held = Some(held);
    }

    /// Makes what was held back the candidate again.
    pub(crate) fn retry_held(&mut self) {
        self.verdict = match self.held.take() {
            Some(HeldRevision::Candidate(held)) => {
                self.candidate = Some(*held);
                Verdict::Pending(None)
            }
            Some(HeldRevision::Running) => Verdict::Accepted,
            None => return,
        };
    }

    /// Makes the accepted revision the candidate again, to be stored as if it were new.
    pub(crate) fn reopen(&mut self, running: Running) {
        if self.candidate.is_none() && self.verdict == Verdict::Accepted {
            self.candidate = Some(running.runs);
            self.verdict = Verdict::Pending(None);
        }
    }

    /// Makes a revision that compiles the candidate, unless it already runs.
    fn note_good(&mut self, judged: RunnableRevision, running: Option<&Running>) {
        self.held = None;
        let same = |running: &Running| {
            running.hash == judged.hash
                && orkestra_plan::diff(&running.plan, &judged.plan).is_empty()
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
    /// Compiles the object, unless that was done with the same inputs.
    pub(crate) async fn judge(&mut self) {
        if self.is_judged() {
            return;
        }
        let document = Arc::clone(&self.object.document);
        self.judgement.document = Arc::clone(&document);
        self.judgement.generation = self.object.metadata.generation;
        let mut subject = VerdictSubject {
            generation: self.object.metadata.generation,
            kinds: document.kinds.clone(),
            crds: known(&self.shared.context.crds, &document.kinds),
            motifs: UsedMotifs::new(),
            // Read before the artifacts: one that arrives in between is judged again.
            sources: self.source_states(),
            approved: self.object.approved.clone(),
        };
        let judged = self.compile(&document, &mut subject).await;
        self.judgement.subject = Some(subject);
        match judged {
            Ok(judged) => self.judgement.note_good(judged, self.running.as_ref()),
            // It is logged once, with its Event: a document is judged again whenever what it refers to changes.
            Err(verdict) => self.judgement.set_aside(verdict),
        }
    }

    /// Compiles the document, and completes the subject with what it refers to.
    async fn compile(
        &mut self,
        document: &Arc<Document>,
        subject: &mut VerdictSubject,
    ) -> Result<RunnableRevision, Verdict> {
        if let Some(why) = &document.unread {
            let message = format!("it cannot be read: {why}");
            let reason = KatalogReason::InvalidRevision;
            return Err(Verdict::Refused { reason, message });
        }
        let (named, parsed) = (self.reference.to_string(), Arc::clone(document));
        let parsed = blocking(named, (), move || {
            let tree = parsed.tree();
            let source = Source::from_object(&tree);
            (tree, source)
        });
        let parsed = parsed.await;
        let broken = |error: &JoinError| Verdict::refused(failed(&self.reference, error));
        let (tree, source) = parsed.map_err(|error| broken(&error))?;
        let source = source.map_err(|problems| Verdict::refused(invalid(problems)))?;
        let inputs = ObjectInputs::new(
            &self.shared,
            &self.reference.namespace,
            self.sources.as_ref().map(KomposerSources::known),
        );
        let finished = finish(self.compilation(source), &inputs, ()).await;
        let metrics = &self.shared.context.metrics;
        let (compilation, step) = match finished {
            Ok(finished) => finished,
            Err(DriveError::Compiler(error)) => {
                metrics.compiled(CompiledFor::NewestRevision, None);
                return Err(broken(&error));
            }
            Err(DriveError::Input(never)) => match never {},
        };
        metrics.compiled(CompiledFor::NewestRevision, Some(&step));
        subject.kinds.clone_from(compilation.kinds());
        subject.motifs = compilation.motifs();
        subject.crds = inputs
            .used_crds()
            .unwrap_or_else(|| known(&self.shared.context.crds, compilation.kinds()));
        self.take(compilation, step, tree).await
    }

    /// Returns the compilation of the document, with the sources that are known. The newest revisions of sources and Motifs run if
    /// they are approved: of others, the running ones stay, and the rest rolls on.
    fn compilation(&self, source: Source) -> Compilation {
        let rules = CompilationRules {
            in_force: self.running.as_ref().map(|running| running.in_force()),
            approved: self.object.approved.clone(),
            ..self.shared.context.rules.clone()
        };
        let site = DocumentSite::Cluster(self.reference.clone());
        let mut compilation = Compilation::new(source, site).under(rules);
        for (id, artifact) in self.artifacts() {
            compilation.answer(InputAnswer::Source(id, SourceAnswer::Fetched(artifact)));
        }
        compilation
    }

    /// Takes the end of a compilation.
    async fn take(
        &mut self,
        compilation: Compilation,
        step: CompilationStep,
        tree: Value,
    ) -> Result<RunnableRevision, Verdict> {
        self.judgement.requests = compilation.requests().to_vec();
        let unapproved = compilation.unapproved().to_vec();
        let named = self.reference.to_string();
        // The hash is of the whole document, and what is not kept is large.
        let judged = blocking(named, (), move || {
            drop(compilation);
            RunnableRevision::of(step, &tree)
        });
        let judged = judged.await;
        let broken = |error| Verdict::refused(failed(&self.reference, &error));
        let judged = judged.unwrap_or_else(|error| Err(broken(error)));
        // A document that is not compared says nothing about what was held back.
        if judged.is_ok() || !unapproved.is_empty() {
            self.judgement.unapproved = unapproved;
        }
        judged
    }

    /// True if the verdict is current: while the document and its Motifs are unchanged, it refers to the same Motifs.
    fn is_judged(&self) -> bool {
        let Some(judged) = &self.judgement.subject else {
            return false;
        };
        let motif = |name: &String| {
            let motif = self.shared.motifs.get(&self.reference.namespace, name);
            (name.clone(), motif.ok())
        };
        let now = VerdictSubject {
            generation: self.object.metadata.generation,
            kinds: judged.kinds.clone(),
            crds: known(&self.shared.context.crds, &judged.kinds),
            motifs: judged.motifs.keys().map(motif).collect(),
            sources: self.source_states(),
            approved: self.object.approved.clone(),
        };
        *judged == now
    }
}

#[cfg(test)]
mod tests;
