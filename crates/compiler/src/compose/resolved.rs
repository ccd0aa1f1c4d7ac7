//! The result of a merge.

use super::artifact::SourceRecord;
use super::includes::Included;
use super::lock::Lock;
use super::locks::RequiredLock;
use crate::scope::{Library, Reference};
use orkestra_language::api::{KatalogSpec, Scopes};
use orkestra_language::diagnostics::{Diagnostic, Diagnostics, FieldPath};
use orkestra_language::document::KatalogDocument;
use orkestra_language::tree::Tree;
use orkestra_plan::definitions::Schemas;

/// A composition with everything that is needed to run it: its sources are not read again.
#[derive(Debug, Clone)]
pub struct ResolvedComposition {
    /// The sources, in the order in which they were merged.
    pub sources: Vec<SourceRecord>,
    /// The merged Katalog, with the name and the labels of the composition. Its `spec` has a scope for each source, which are
    /// not part of its serialized form: store [`ResolvedComposition::to_json`], never the `spec` alone.
    pub document: KatalogDocument,
    pub(crate) includes: Included,
    /// The composition as a Katalog without entries.
    pub(crate) head: Tree,
    /// What requires a lock. It is not stored: a stored composition fetches nothing.
    pub(crate) required_lock: RequiredLock,
}

impl ResolvedComposition {
    /// Returns the merged `spec`, for `compile::katalog`.
    pub fn spec(&self) -> &KatalogSpec {
        &self.document.spec
    }

    /// Returns the source of an operator; `None` for one that the composition declares itself.
    pub fn source_of(&self, operator: &str) -> Option<&SourceRecord> {
        let has = |name: &String| name == operator;
        self.sources
            .iter()
            .find(|source| source.operators.iter().any(has))
    }

    /// Answers the references of its Katalogs that lead to files of their artifacts. Returns the others, which the caller
    /// answers: files on disk, and Motifs of the cluster by name.
    pub fn fill(&self, library: &mut Library, missing: Vec<Reference>) -> Vec<Reference> {
        self.includes.fill(library, missing)
    }

    /// Adds the custom resource definitions that are files of artifacts.
    pub fn add_schemas(&self, schemas: &mut Schemas) {
        self.includes.schemas(&self.document.spec, schemas);
    }

    /// Returns the document that a field of an entry comes from, as in messages.
    pub fn file_of(&self, path: &FieldPath) -> Option<&str> {
        match path.segments().get(2) {
            Some(orkestra_language::tree::Segment::Field(name)) => {
                let scope = self.document.spec.scopes.of(name)?;
                Some(scope.origin.owner(path).0)
            }
            _ => self.document.file.as_deref(),
        }
    }

    /// Returns the lock that must have what the field at `path` names; `None` if it need not be locked.
    pub fn lock_of(&self, path: &FieldPath) -> Option<&Lock> {
        let RequiredLock { files, lock } = &self.required_lock;
        let file = self.file_of(path).unwrap_or_default();
        files.contains(file).then_some(lock)
    }

    /// True if the document that a field of an entry comes from was fetched.
    pub fn is_fetched(&self, path: &FieldPath) -> bool {
        self.file_of(path)
            .is_some_and(|file| self.includes.has(file))
    }

    /// Returns a file that the field at `path` names: its name and content, or why there is none. `None` if it is not in an
    /// artifact, but beside [`ResolvedComposition::file_of`] on disk.
    pub fn manifest(&self, path: &FieldPath, text: &str) -> Option<Result<(String, &str), String>> {
        self.includes.manifest(self.file_of(path)?, text)
    }

    /// Returns the document of a place in a plan: its name in messages, the path in it, and its tree.
    pub fn place(&self, at: &str) -> Option<(&str, FieldPath, &Tree)> {
        self.document.spec.scopes.0.iter().find_map(|scope| {
            let path = at.strip_prefix(&*scope.origin.name)?.strip_prefix(": ")?;
            let path = FieldPath::parse(path);
            let (file, tree) = scope.origin.owner(&path);
            Some((file, path, tree))
        })
    }

    /// Sets file and position of the problems of entries.
    pub fn locate(&self, problems: &mut Diagnostics) {
        for problem in &mut problems.0 {
            locate(problem, &self.document.spec.scopes);
        }
    }
}

/// Sets file and position of a problem below an entry of `spec.crds`.
pub(crate) fn locate(problem: &mut Diagnostic, scopes: &Scopes) {
    use orkestra_language::tree::Segment::Field;
    if let [Field(spec), Field(crds), Field(name), ..] = problem.path.segments()
        && (&**spec, &**crds) == ("spec", "crds")
        && let Some(scope) = scopes.of(name)
    {
        problem.locate_in(&scope.origin);
    }
}
