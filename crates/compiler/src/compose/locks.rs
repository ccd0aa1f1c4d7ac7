//! The locks of a composition and of the compositions around it.
//!
//! Each of them applies: a nested composition cannot permit what one around it refuses. A nested one that requires a lock accepts
//! the digests of its own `spec.locked` and those that the compositions around it lock.

use std::collections::BTreeSet;

use super::artifact::Artifact;
use super::composition::Composition;
use super::lock::Lock;
use super::request::SourceRequest;
use orkestra_language::diagnostics::Diagnostic;

/// The locks of the compositions that are being merged, the outermost first.
#[derive(Debug)]
pub(crate) struct Locks<'a> {
    all: Vec<CompositionLock>,
    /// The lock file beside the outermost composition, if it was read: it satisfies nested ones.
    beside: Option<&'a Lock>,
    /// Whether those of nested compositions do not apply.
    ignores_nested: bool,
    required: RequiredLock,
}

/// The documents that require a lock of what they refer to, and the digests that they accept.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequiredLock {
    /// Their names in messages.
    pub(crate) files: BTreeSet<String>,
    /// The lock of the outermost composition.
    pub(crate) lock: Lock,
}

/// The lock of one composition.
#[derive(Debug)]
struct CompositionLock {
    lock: Lock,
    /// Whether all sources must be in it, or in one around it.
    required: bool,
    /// The document, as in messages.
    file: String,
}

impl<'a> Locks<'a> {
    /// Creates the locks around a composition, which are none.
    pub(crate) fn around(composition: &'a Composition) -> Self {
        let mut lock = composition.lock.clone();
        for (id, locked) in composition.beside.iter().flat_map(|lock| &lock.sources) {
            lock.sources
                .entry(id.clone())
                .or_insert_with(|| locked.clone());
        }
        Self {
            all: Vec::new(),
            beside: composition.beside.as_ref(),
            ignores_nested: composition.ignores_locks,
            required: RequiredLock {
                files: BTreeSet::new(),
                lock,
            },
        }
    }

    /// Adds the lock of a composition inside of those that are known.
    pub(crate) fn push(&mut self, composition: &Composition) {
        let applies = self.all.is_empty() || !self.ignores_nested;
        let lock = applies.then(|| composition.lock.clone());
        let file = composition.file.clone().unwrap_or_default();
        self.all.push(CompositionLock {
            lock: lock.unwrap_or_default(),
            required: applies && composition.requires_lock,
            file: file.clone(),
        });
        self.add_document(&file);
    }

    /// Removes the innermost lock.
    pub(crate) fn pop(&mut self) {
        self.all.pop();
    }

    /// Adds a document of the innermost composition.
    pub(crate) fn add_document(&mut self, file: &str) {
        if self.all.iter().any(|one| one.required) {
            self.required.files.insert(file.to_owned());
        }
    }

    /// True if a nested composition requires a lock, and the file beside the outermost one was not read.
    pub(crate) fn needs_file(&self) -> bool {
        let is_read = self.beside.is_some() || self.all.first().is_none_or(|one| one.required);
        !is_read && self.all.iter().skip(1).any(|one| one.required)
    }

    /// Returns what requires a lock.
    pub(crate) fn into_required(self) -> RequiredLock {
        self.required
    }

    /// Returns why a source is refused.
    pub(crate) fn check(&self, request: &SourceRequest, artifact: &Artifact) -> Option<Diagnostic> {
        let mut is_locked = false;
        for (depth, one) in self.all.iter().enumerate() {
            is_locked |= one.lock.sources.contains_key(&request.id);
            let required = one.required && !is_locked;
            let problem = match self.beside.filter(|_| depth > 0 && required) {
                Some(beside) => beside.check(request, artifact, true),
                None => one.lock.check(request, artifact, required),
            };
            if let Some(problem) = problem {
                return Some(match depth {
                    0 => problem,
                    _ => problem.hint(format!(
                        "{} requires it with `spec.lock` or `spec.locked`: run `ork lock`, or use a revision of it that locks this digest",
                        one.file
                    )),
                });
            }
        }
        None
    }
}
