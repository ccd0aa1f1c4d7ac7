//! The result of a merge.

use super::artifact::SourceRecord;
use super::includes::Included;
use crate::api::{KatalogSpec, Scopes};
use crate::diagnostics::{Diagnostic, Diagnostics, FieldPath};
use crate::document::KatalogDocument;
use crate::tree::Tree;
use crate::{
    definitions::Schemas,
    scope::{Library, Reference},
};

/// A composition with everything that is needed to run it: its sources are not read again.
#[derive(Debug, Clone)]
pub struct ResolvedComposition {
    /// The sources, in the order in which they were merged.
    pub sources: Vec<SourceRecord>,
    /// The merged Katalog, with the name and the labels of the composition. Its `spec` has a scope for each source, which are
    /// not part of its serialized form: store [`ResolvedComposition::to_json`], never the `spec` alone.
    pub document: KatalogDocument,
    pub(super) includes: Included,
    /// The composition as a Katalog without entries.
    pub(super) head: Tree,
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
            Some(crate::tree::Segment::Field(name)) => {
                let scope = self.document.spec.scopes.of(name)?;
                Some(scope.origin.owner(path).0)
            }
            _ => self.document.file.as_deref(),
        }
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
pub(super) fn locate(problem: &mut Diagnostic, scopes: &Scopes) {
    use crate::tree::Segment::Field;
    if let [Field(spec), Field(crds), Field(name), ..] = problem.path.segments()
        && (&**spec, &**crds) == ("spec", "crds")
        && let Some(scope) = scopes.of(name)
    {
        problem.locate_in(&scope.origin);
    }
}
