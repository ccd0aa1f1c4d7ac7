//! The sources of a composition are merged.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::inputs::{InputRequest, SourceAnswer, UnreadFile};
use super::resolving::{ReadDocument, Resolving};
use super::result::{MissingSource, MissingSources};
use super::{Compilation, CompilationResult, Moved, RefusedDocument, State, invalid};
use crate::compose::{
    Artifact, Artifacts, Composition, LOCK_FILE, Lock, Merged, ResolvedComposition, SourceRecord,
    SourceRequest, is_pinned, merge,
};
use orkestra_language::api::{KomposerSpec, LockMode};
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};

/// The maximum number of rounds of requests: each one has the sources of nested compositions, whose depth is limited.
const MOST_ROUNDS: usize = 32;

/// A composition whose sources are being merged.
#[derive(Debug)]
pub(crate) struct Merging {
    composition: Composition,
    locks: Locks,
    /// The warnings of its document.
    found: Diagnostics,
    /// The artifacts that it is merged from.
    used: Artifacts,
    rounds: usize,
    /// Whether the lock file beside it was read, or is not needed.
    is_locked: bool,
}

/// The rules of a Komposer on the digests of its sources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Locks {
    /// Whether each source must be locked.
    required: bool,
    locked: BTreeMap<String, String>,
    approved: BTreeSet<String>,
}

impl Merging {
    pub(crate) fn new(composition: Composition, locks: Locks, found: Diagnostics) -> Self {
        Self {
            is_locked: !composition.requires_lock,
            composition,
            locks,
            found,
            used: Artifacts::new(),
            rounds: 0,
        }
    }

    /// Returns the warnings of its document.
    pub(crate) fn warnings(&self) -> &Diagnostics {
        &self.found
    }

    /// Returns the end of a composition with problems.
    fn refused(self, problems: impl IntoIterator<Item = Diagnostic>) -> Moved {
        let mut found = self.found;
        found.extend(problems);
        invalid(found)
    }
}

/// Returns what a lock file beside a composition locks: nothing if there is none.
fn lock_of(file: &Path, text: &Result<String, UnreadFile>) -> Result<Lock, Diagnostics> {
    let wrong = |code, why: String| Diagnostic {
        file: Some(file.display().to_string()),
        ..Diagnostic::error(code, FieldPath::root(), why)
    };
    match text {
        Ok(text) => Ok(Lock::read(text).map_err(|why| wrong(Code::Syntax, why.to_string()))?),
        Err(unread) if unread.is_missing => Ok(Lock::default()),
        Err(unread) => Err(wrong(Code::Unreadable, unread.why.clone()).into()),
    }
}

impl Locks {
    pub(crate) fn of(spec: &KomposerSpec) -> Self {
        Self {
            required: spec.lock == Some(LockMode::Required),
            locked: spec.locked.clone(),
            approved: spec.approve.iter().cloned().collect(),
        }
    }

    /// Leaves the digests of sources to the merge, which reports them with their positions.
    pub(crate) fn forget_digests(&mut self) {
        (self.required, self.locked) = (false, BTreeMap::new());
    }

    /// Returns why a source is refused.
    fn refusal(&self, records: &[SourceRecord]) -> Option<String> {
        records.iter().find_map(|record| {
            let SourceRecord { source, digest, .. } = record;
            match self.locked.get(source) {
                Some(locked) if locked == digest => None,
                Some(locked) => Some(format!(
                    "source {source} has the digest {digest}; `spec.locked` has {locked}"
                )),
                None if self.required && !is_pinned(source, digest) => Some(format!(
                    "source {source} is not locked, and `spec.lock` is `required`: add its digest {digest} to `spec.locked`"
                )),
                None => None,
            }
        })
    }
}

impl Compilation {
    /// Merges the sources that are known, and asks for the others.
    pub(crate) fn merge(&mut self, mut merging: Box<Merging>) -> Moved {
        if !merging.is_locked {
            let file = self.lock_file();
            let Some(text) = self.inputs.files.get(&file) else {
                return Moved::Need(State::Merging(merging), vec![InputRequest::File(file)]);
            };
            let written = match lock_of(&file, text) {
                Ok(lock) => lock,
                Err(problems) => return invalid(problems),
            };
            // `spec.locked` takes precedence.
            for (source, locked) in written.sources {
                let sources = &mut merging.composition.lock.sources;
                sources.entry(source).or_insert(locked);
            }
            merging.is_locked = true;
            if self.rules.ignores_locks {
                let composition = &mut merging.composition;
                (composition.lock, composition.requires_lock) = (Lock::default(), false);
            }
        }
        merging.composition.ignores_locks = self.rules.ignores_locks;
        loop {
            let requests = match merge(&merging.composition, &merging.used) {
                Err(problems) => return merging.refused(problems),
                Ok(Merged::Done(resolved, warnings)) => {
                    merging.found.extend(warnings);
                    return self.merged(*merging, *resolved);
                }
                Ok(Merged::Need(requests)) => requests,
                Ok(Merged::NeedLock) => {
                    let file = self.lock_file();
                    let Some(text) = self.inputs.files.get(&file) else {
                        return Moved::Need(
                            State::Merging(merging),
                            vec![InputRequest::File(file)],
                        );
                    };
                    match lock_of(&file, text) {
                        Ok(lock) => merging.composition.beside = Some(lock),
                        Err(problems) => return merging.refused(problems),
                    }
                    continue;
                }
            };
            self.note_requests(&requests);
            let before = merging.used.len();
            for request in &requests {
                if let Some(artifact) = self.artifact(&request.id) {
                    merging.used.insert(request.id.clone(), artifact);
                }
            }
            if merging.used.len() == before {
                return self.missing(merging, requests);
            }
        }
    }

    /// Asks for sources, or waits for them if they were asked for.
    fn missing(&self, mut merging: Box<Merging>, requests: Vec<SourceRequest>) -> Moved {
        let (mut needed, mut failed, mut awaited) = (Vec::new(), Vec::new(), Vec::new());
        let composition = &merging.composition;
        let lock = composition.requires_lock.then_some(&composition.lock);
        for request in requests {
            match self.inputs.source(&request.id) {
                None => {
                    let locked = lock.and_then(|lock| lock.sources.get(&request.id));
                    let locked = locked.cloned();
                    needed.push(InputRequest::Source(Box::new(request), locked));
                }
                Some(SourceAnswer::Failed(problem)) => failed.push((**problem).clone()),
                Some(SourceAnswer::Awaited(why)) => awaited.push(MissingSource {
                    request,
                    why: why.clone(),
                }),
                // It was merged above.
                Some(SourceAnswer::Fetched(_)) => {}
            }
        }
        if !failed.is_empty() {
            return merging.refused(failed);
        }
        if needed.is_empty() {
            return Moved::Waiting(State::Merging(merging), MissingSources(awaited));
        }
        merging.rounds += 1;
        if merging.rounds > MOST_ROUNDS {
            let message = format!("the sources need more than {MOST_ROUNDS} rounds");
            let place = merging.composition.place();
            return merging.refused([Diagnostic::error(Code::TooLarge, place, message)]);
        }
        Moved::Need(State::Merging(merging), needed)
    }

    /// Continues with the merged composition.
    fn merged(&mut self, merging: Merging, resolved: ResolvedComposition) -> Moved {
        if let Some(message) = merging.locks.refusal(&resolved.sources) {
            return Moved::Ended(CompilationResult::Refused(RefusedDocument::NotLocked(
                message,
            )));
        }
        self.kinds.extend(super::kinds_named(&resolved.to_json()));
        let subject = ReadDocument::Katalog {
            document: Box::new(resolved.document.clone()),
            composed: Some(Arc::new(resolved)),
            used: merging.used,
            approved: merging.locks.approved,
        };
        let resolving = Resolving::new(subject, merging.found);
        Moved::To(State::Resolving(resolving.into()))
    }

    /// Returns the artifact of a source: the newest one, or the running one if that is held back.
    pub(crate) fn artifact(&self, id: &str) -> Option<Arc<Artifact>> {
        if let Some(running) = self.approvals().artifact(id) {
            return Some(Arc::clone(running));
        }
        match self.inputs.source(id)? {
            SourceAnswer::Fetched(artifact) => Some(Arc::clone(artifact)),
            SourceAnswer::Failed(_) | SourceAnswer::Awaited(_) => None,
        }
    }

    /// Notes the sources of the newest composition, in which nothing is held back.
    pub(crate) fn note_requests(&mut self, requests: &[SourceRequest]) {
        if self.held.is_empty() {
            let known = &self.requests;
            let is_new =
                |request: &&SourceRequest| known.iter().all(|known| known.id != request.id);
            let new: Vec<SourceRequest> = requests.iter().filter(is_new).cloned().collect();
            self.requests.extend(new);
        }
    }

    /// Returns the path of the lock file beside the document.
    fn lock_file(&self) -> PathBuf {
        match &self.site {
            super::DocumentSite::File(path) => path.with_file_name(LOCK_FILE),
            super::DocumentSite::Cluster(_) => PathBuf::from(LOCK_FILE),
        }
    }
}
