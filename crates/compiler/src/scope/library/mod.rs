//! The documents that a Katalog imports: Motifs and included files, already read.
//!
//! ```text
//!  KatalogSpec ── missing ──► references ── the caller reads ──► put_text, put_object, put_absent ──┐
//!       ▲                                                                                           │
//!       └───────────────────────── until nothing is missing ◄──────────────────────────────────────┘
//! ```
//!
//! Motifs import Motifs, so further references become known as documents are added.

mod references;

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::At;
use orkestra_language::{
    api::{
        KatalogSpec, MotifSpec, Profiles, Reconciler, StatusSpec,
        observe::Observe,
        rules::{MutationRule, ValidationRule},
    },
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{self, DocumentKind, MotifDocument, Source},
};

use orkestra_language::tree::Origin;
pub use references::{Reference, ReferenceKind, beside, is_of_registry};
pub(crate) use references::{named, refusal};

/// Maximum number of documents that one Katalog imports.
const MOST_DOCUMENTS: usize = 256;

/// Motifs and included files, already read.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// For each reference the name of its document, or why it cannot be resolved.
    answers: BTreeMap<Reference, Result<Box<str>, Box<str>>>,
    documents: BTreeMap<(ReferenceKind, Box<str>), Arc<LibraryDocument>>,
}

/// A document that was read.
#[derive(Debug)]
pub(crate) struct LibraryDocument {
    pub(crate) origin: Arc<Origin>,
    pub(crate) content: Content,
    /// Its errors and warnings.
    found: Vec<Diagnostic>,
}

/// The content of a document.
#[derive(Debug)]
pub(crate) enum Content {
    Motif(Box<MotifSpec>),
    Profiles(Box<Profiles>),
    Status(StatusSpec),
    Reconciler(Reconciler),
    Observe(Observe),
    Validation(Vec<ValidationRule>),
    Mutation(Vec<MutationRule>),
    /// Nothing usable: it has errors.
    Broken,
}

impl Library {
    /// Returns the references of `spec`, and of the documents that it imports, that are not in the library yet, in order
    /// and without duplicates.
    ///
    /// References of refused kinds, such as `oci://`, are left out.
    pub fn missing(&self, spec: &KatalogSpec) -> Vec<Reference> {
        references::missing(self, |walk| walk.katalog(spec))
    }

    /// Returns the same for a Motif that nothing imports.
    pub fn missing_of_motif(&self, spec: &MotifSpec) -> Vec<Reference> {
        references::missing(self, |walk| walk.motif(None, spec))
    }

    /// Returns the document of a place in a plan, if it is one of these: its file, the path in it, and its tree.
    pub fn place(&self, at: &str) -> Option<(&str, FieldPath, &document::Tree)> {
        self.documents.values().find_map(|document| {
            let origin = &document.origin;
            let path = at.strip_prefix(&*origin.name)?.strip_prefix(": ")?;
            Some((&*origin.file, FieldPath::parse(path), &origin.tree))
        })
    }

    /// Returns the trees of its documents.
    pub(crate) fn trees(&self) -> impl Iterator<Item = &document::Tree> {
        self.documents
            .values()
            .map(|document| &document.origin.tree)
    }

    /// Answers `reference` with the text of a file. `file` identifies the file: it is the same for every document that
    /// refers to it.
    pub fn put_text(&mut self, reference: Reference, file: &str, text: &str) {
        self.put(reference, file, || {
            let stream = document::parse_stream(file, text);
            (stream.sources, stream.problems)
        });
    }

    /// Answers `reference` with a Motif that is already read, from a file given with the Katalog.
    pub fn put_motif(&mut self, reference: Reference, motif: &MotifDocument) {
        let file = motif.file.as_deref().unwrap_or_default();
        let name: Box<str> = format!("{file}#{}", motif.name).into();
        let document = LibraryDocument {
            origin: Arc::new(Origin::new(name.clone(), file, motif.tree.clone())),
            content: Content::Motif(Box::new(motif.spec.clone())),
            found: Vec::new(),
        };
        let key = (reference.part, name.clone());
        self.documents.entry(key).or_insert(Arc::new(document));
        self.answers.insert(reference, Ok(name));
    }

    /// Answers `reference` with an object of the cluster; `name` identifies it.
    pub fn put_object(&mut self, reference: Reference, name: &str, object: &Value) {
        self.put(reference, name, || match Source::from_object(object) {
            Ok(source) => (vec![source], Diagnostics::default()),
            Err(problems) => (Vec::new(), problems),
        });
    }

    /// Answers `reference` with why it cannot be resolved: `there is no Motif …`, and the fix.
    pub fn put_absent(&mut self, reference: Reference, why: impl Into<Box<str>>) {
        self.answers.insert(reference, Err(why.into()));
    }

    fn put(
        &mut self,
        reference: Reference,
        name: &str,
        read: impl FnOnce() -> (Vec<Source>, Diagnostics),
    ) {
        let name: Box<str> = name.into();
        self.documents
            .entry((reference.part, name.clone()))
            .or_insert_with(|| {
                let (sources, problems) = read();
                Arc::new(LibraryDocument::read(
                    reference.part,
                    &name,
                    sources,
                    problems,
                ))
            });
        self.answers.insert(reference, Ok(name));
    }

    /// Returns the document that `text` at `at` refers to. Its problems are reported, and so is a missing document.
    pub(crate) fn open(
        &self,
        at: &At<'_>,
        part: ReferenceKind,
        text: &str,
    ) -> Option<&LibraryDocument> {
        let reference = Reference {
            from: at.origin().map(|origin| origin.name.clone()),
            file: at.origin().map(|origin| origin.owner(at.path()).0.into()),
            part,
            text: text.into(),
        };
        match self.answers.get(&reference) {
            Some(Ok(name)) => {
                let document = self.documents.get(&(part, name.clone()))?;
                at.document(&document.origin).pass_on(&document.found);
                Some(document)
            }
            Some(Err(why)) => {
                at.error(Code::NotFound, &**why);
                None
            }
            None => {
                let hint = format!("at most {MOST_DOCUMENTS} documents are read for one Katalog");
                at.error_hint(Code::NotFound, format!("`{text}` was not read"), hint);
                None
            }
        }
    }
}

impl LibraryDocument {
    /// Reads the one wanted document of a text.
    fn read(part: ReferenceKind, name: &str, sources: Vec<Source>, problems: Diagnostics) -> Self {
        let all = sources.len();
        let is_wanted = |source: &Source| {
            all == 1
                || part != ReferenceKind::Motif
                || DocumentKind::of(source) == Some(DocumentKind::Motif)
        };
        let mut wanted: Vec<Source> = sources.into_iter().filter(is_wanted).collect();
        let (Some(source), true) = (wanted.pop(), wanted.is_empty()) else {
            let mut found = problems;
            if found.is_empty() {
                found.push(not_one(part, all));
            }
            return Self::broken(name, None, found);
        };
        match read(part, &source) {
            Ok((content, tree, found)) if problems.is_empty() => Self {
                origin: Arc::new(Origin::new(name, name, tree)),
                content,
                found,
            },
            Ok((_, tree, warnings)) => {
                let mut found = problems;
                found.extend(warnings);
                Self::broken(name, Some(tree), found)
            }
            Err(others) => {
                let mut found = problems;
                found.extend(others.0);
                Self::broken(name, Some(source.tree), found)
            }
        }
    }

    fn broken(name: &str, tree: Option<document::Tree>, mut problems: Diagnostics) -> Self {
        for problem in &mut problems.0 {
            problem.file.get_or_insert_with(|| name.to_owned());
        }
        Self {
            origin: Arc::new(Origin::new(
                name,
                name,
                tree.unwrap_or(document::Tree::new(document::TreeValue::Null)),
            )),
            content: Content::Broken,
            found: problems.0,
        }
    }
}

/// Reports a text that does not contain exactly one wanted document, but `count` of all kinds.
fn not_one(part: ReferenceKind, count: usize) -> Diagnostic {
    let called = part.called();
    let error = |message| Diagnostic::error(Code::NoDocument, FieldPath::root(), message);
    if count == 0 {
        return error(format!("there is no {called} in it"));
    }
    let message = match part {
        ReferenceKind::Motif => "it must hold one Motif",
        _ => "it must hold one document",
    };
    error(message.to_owned()).hint("split it into files of their own")
}

type Read = (Content, document::Tree, Vec<Diagnostic>);

fn read(part: ReferenceKind, source: &Source) -> Result<Read, Diagnostics> {
    match part {
        ReferenceKind::Motif => document::read_motif(source)
            .map(|(motif, warnings)| (Content::Motif(Box::new(motif.spec)), motif.tree, warnings)),
        ReferenceKind::Profiles => document::read_included(source, "profiles")
            .map(|(read, tree, warnings)| (Content::Profiles(Box::new(read)), tree, warnings)),
        ReferenceKind::Status => document::read_included(source, "status")
            .map(|(read, tree, warnings)| (Content::Status(read), tree, warnings)),
        ReferenceKind::Reconciler => document::read_included(source, "reconciler")
            .map(|(read, tree, warnings)| (Content::Reconciler(read), tree, warnings)),
        ReferenceKind::Observe => document::read_included(source, "observe")
            .map(|(read, tree, warnings)| (Content::Observe(read), tree, warnings)),
        ReferenceKind::Validation => document::read_included(source, "rules")
            .map(|(read, tree, warnings)| (Content::Validation(read), tree, warnings)),
        ReferenceKind::Mutation => document::read_included(source, "rules")
            .map(|(read, tree, warnings)| (Content::Mutation(read), tree, warnings)),
    }
}
