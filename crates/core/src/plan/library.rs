//! What a Katalog takes from elsewhere: Motifs and included files, already read.
//!
//! ```text
//!  KatalogSpec ── missing ──► references ── the caller reads ──► put_text, put_object, put_absent ──┐
//!       ▲                                                                                           │
//!       └───────────────────────── until nothing is missing ◄──────────────────────────────────────┘
//! ```
//!
//! Motifs import Motifs, so what is missing shows as documents come in.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path},
    sync::Arc,
};

use serde_json::Value;

use crate::{
    api::{KatalogSpec, MotifImport, MotifSpec, OperatorBox, Profiles, Reconciler, StatusSpec},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{self, DocumentKind, MotifDocument, Source},
    resources::scope::At,
};

/// Most documents that one Katalog takes something from.
const MOST_DOCUMENTS: usize = 256;

/// A document other than the Katalog itself: its name and what stands where in it.
#[derive(Debug)]
pub struct Origin {
    /// What tells it from others.
    pub name: Box<str>,
    /// What messages call it: the file as it is reached from here, or `motif/<name>`.
    pub file: Box<str>,
    /// What stands where, in today's spelling.
    pub tree: document::Tree,
}

/// What a reference is expected to lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// A Motif.
    Motif,
    /// A file with `profiles`.
    Profiles,
    /// A file with `status`.
    Status,
    /// A file with `reconciler`.
    Reconciler,
}

impl Part {
    /// What messages call the document.
    fn called(self) -> &'static str {
        match self {
            Self::Motif => "Motif",
            Self::Profiles | Self::Status | Self::Reconciler => "document",
        }
    }
}

/// Something that a document takes from elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    /// The name of the document that says so; none is the Katalog.
    pub from: Option<Box<str>>,
    /// The file of that document, as messages call it: paths are relative to it.
    pub file: Option<Box<str>>,
    /// What it must lead to.
    pub part: Part,
    /// The path or name, as it is written.
    pub text: Box<str>,
}

/// Motifs and included files, already read.
#[derive(Clone, Debug, Default)]
pub struct Library {
    /// The name of the document that a reference leads to, or why it leads nowhere.
    answers: BTreeMap<Reference, Result<Box<str>, Box<str>>>,
    documents: BTreeMap<(Part, Box<str>), Arc<Document>>,
}

/// A document that was read.
#[derive(Debug)]
pub(crate) struct Document {
    pub(crate) origin: Arc<Origin>,
    pub(crate) content: Content,
    /// What is wrong with it, or odd.
    found: Vec<Diagnostic>,
}

/// What a document holds.
#[derive(Debug)]
pub(crate) enum Content {
    Motif(Box<MotifSpec>),
    Profiles(Box<Profiles>),
    Status(StatusSpec),
    Reconciler(Reconciler),
    /// Nothing that can be used: it has errors.
    Broken,
}

impl Library {
    /// What `spec`, and the documents that it leads to, refer to and what is not here yet, in order and each once.
    ///
    /// References of kinds that are refused anyhow, such as `oci://`, are not among them.
    pub fn missing(&self, spec: &KatalogSpec) -> Vec<Reference> {
        self.walk(|walk| walk.katalog(spec))
    }

    /// The same of a Motif that nobody imports.
    pub fn missing_of_motif(&self, spec: &MotifSpec) -> Vec<Reference> {
        self.walk(|walk| walk.motif(None, spec))
    }

    fn walk<'a>(&'a self, through: impl FnOnce(&mut Walk<'a>)) -> Vec<Reference> {
        if self.documents.len() >= MOST_DOCUMENTS {
            return Vec::new();
        }
        let mut walk = Walk {
            library: self,
            seen: BTreeSet::new(),
            missing: BTreeSet::new(),
        };
        through(&mut walk);
        walk.missing.into_iter().collect()
    }

    /// The document that a place of a plan is in, if it is one of these: its file, the path in it, and what stands there.
    pub fn place(&self, at: &str) -> Option<(&str, FieldPath, &document::Tree)> {
        self.documents.values().find_map(|document| {
            let origin = &document.origin;
            let path = at.strip_prefix(&*origin.name)?.strip_prefix(": ")?;
            Some((&*origin.file, FieldPath::parse(path), &origin.tree))
        })
    }

    /// Answers `reference` with the text of a file. `file` tells files apart: the same one is called the same, whoever
    /// refers to it.
    pub fn put_text(&mut self, reference: Reference, file: &str, text: &str) {
        self.put(reference, file, || {
            let stream = document::parse_stream(file, text);
            (stream.sources, stream.problems)
        });
    }

    /// Answers `reference` with a Motif that is read already: of a file that was given with the Katalog.
    pub fn put_motif(&mut self, reference: Reference, motif: &MotifDocument) {
        let file = motif.file.as_deref().unwrap_or_default();
        let name: Box<str> = format!("{file}#{}", motif.name).into();
        let document = Document {
            origin: Arc::new(Origin {
                name: name.clone(),
                file: file.into(),
                tree: motif.tree.clone(),
            }),
            content: Content::Motif(Box::new(motif.spec.clone())),
            found: Vec::new(),
        };
        let key = (reference.part, name.clone());
        self.documents.entry(key).or_insert(Arc::new(document));
        self.answers.insert(reference, Ok(name));
    }

    /// Answers `reference` with an object of the cluster that is called `name`.
    pub fn put_object(&mut self, reference: Reference, name: &str, object: &Value) {
        self.put(reference, name, || match Source::from_object(object) {
            Ok(source) => (vec![source], Diagnostics::default()),
            Err(problems) => (Vec::new(), problems),
        });
    }

    /// Answers `reference` with why there is nothing: `there is no Motif …`, and the mend.
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
                Arc::new(Document::read(reference.part, &name, sources, problems))
            });
        self.answers.insert(reference, Ok(name));
    }

    /// The document that `text` at `at` leads to. What is wrong with it, or that there is none, is reported.
    pub(crate) fn open(&self, at: &At<'_>, part: Part, text: &str) -> Option<&Document> {
        let reference = Reference {
            from: at.origin().map(|origin| origin.name.clone()),
            file: at.origin().map(|origin| origin.file.clone()),
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

impl Document {
    /// The one document that is wanted of a text's.
    fn read(part: Part, name: &str, sources: Vec<Source>, problems: Diagnostics) -> Self {
        let all = sources.len();
        let is_wanted = |source: &Source| {
            all == 1 || part != Part::Motif || DocumentKind::of(source) == Some(DocumentKind::Motif)
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
                origin: Arc::new(Origin {
                    name: name.into(),
                    file: name.into(),
                    tree,
                }),
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
            origin: Arc::new(Origin {
                name: name.into(),
                file: name.into(),
                tree: tree.unwrap_or(document::Tree::new(document::TreeValue::Null)),
            }),
            content: Content::Broken,
            found: problems.0,
        }
    }
}

/// A text that does not hold the one document that is wanted, but `count` of all kinds.
fn not_one(part: Part, count: usize) -> Diagnostic {
    let called = part.called();
    let error = |message| Diagnostic::error(Code::NoDocument, FieldPath::root(), message);
    if count == 0 {
        return error(format!("there is no {called} in it"));
    }
    let message = match part {
        Part::Motif => "it must hold one Motif",
        _ => "it must hold one document",
    };
    error(message.to_owned()).hint("split it into files of their own")
}

type Read = (Content, document::Tree, Vec<Diagnostic>);

fn read(part: Part, source: &Source) -> Result<Read, Diagnostics> {
    match part {
        Part::Motif => document::read_motif(source)
            .map(|(motif, warnings)| (Content::Motif(Box::new(motif.spec)), motif.tree, warnings)),
        Part::Profiles => document::read_included(source, "profiles")
            .map(|(read, tree, warnings)| (Content::Profiles(Box::new(read)), tree, warnings)),
        Part::Status => document::read_included(source, "status")
            .map(|(read, tree, warnings)| (Content::Status(read), tree, warnings)),
        Part::Reconciler => document::read_included(source, "reconciler")
            .map(|(read, tree, warnings)| (Content::Reconciler(read), tree, warnings)),
    }
}

/// Follows references from document to document.
struct Walk<'a> {
    library: &'a Library,
    /// Motifs that were walked through.
    seen: BTreeSet<&'a str>,
    missing: BTreeSet<Reference>,
}

impl<'a> Walk<'a> {
    fn katalog(&mut self, spec: &KatalogSpec) {
        self.motifs(None, &spec.imports);
        self.profiles(None, spec.profiles.as_ref());
        for entry in spec.crds.values() {
            self.motifs(None, &entry.imports);
            let Some(OperatorBox {
                status, reconciler, ..
            }) = &entry.operator_box
            else {
                continue;
            };
            let status = status.as_ref().and_then(|status| status.include.as_ref());
            let reconciler = reconciler
                .as_ref()
                .and_then(|reconciler| reconciler.include.as_ref());
            for (part, include) in [(Part::Status, status), (Part::Reconciler, reconciler)] {
                if let Some(text) = include {
                    self.ask(None, part, text);
                }
            }
        }
    }

    fn motif(&mut self, from: Option<&Origin>, motif: &MotifSpec) {
        self.motifs(from, &motif.imports);
        self.profiles(from, motif.profiles.as_ref());
    }

    fn profiles(&mut self, from: Option<&Origin>, profiles: Option<&Profiles>) {
        if let Some(text) = profiles.and_then(|profiles| profiles.include.as_ref()) {
            self.ask(from, Part::Profiles, text);
        }
    }

    fn motifs(&mut self, from: Option<&Origin>, imports: &[MotifImport]) {
        for import in imports.iter().filter(|import| refusal(import).is_none()) {
            if let Some(document) = self.ask(from, Part::Motif, &import.motif)
                && let Content::Motif(motif) = &document.content
                && self.seen.insert(&document.origin.name)
            {
                self.motif(Some(&*document.origin), motif);
            }
        }
    }

    /// The document, if it is here.
    fn ask(&mut self, from: Option<&Origin>, part: Part, text: &str) -> Option<&'a Document> {
        let reference = Reference {
            from: from.map(|origin| origin.name.clone()),
            file: from.map(|origin| origin.file.clone()),
            part,
            text: text.into(),
        };
        let Some(answer) = self.library.answers.get(&reference) else {
            self.missing.insert(reference);
            return None;
        };
        let name = answer.as_ref().ok()?;
        let document = self.library.documents.get(&(part, name.clone()))?;
        Some(&**document)
    }
}

/// The path of a file that `document` names as `text`: relative to the folder of `document`, without steps that lead
/// nowhere, so that one file has one path.
///
/// ```
/// use orkestra_core::plan::beside;
/// assert_eq!(beside("ponds/katalog.yaml", "../motifs/./reeds.yaml"), "motifs/reeds.yaml");
/// assert_eq!(beside("ponds/katalog.yaml", "/motifs/reeds.yaml"), "/motifs/reeds.yaml");
/// ```
pub fn beside(document: &str, text: &str) -> String {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let mut path = folder.to_owned();
    for step in Path::new(text.trim()).components() {
        let last = path.components().next_back();
        match step {
            Component::CurDir => {}
            Component::ParentDir if matches!(last, Some(Component::Normal(_))) => {
                path.pop();
            }
            step => path.push(step),
        }
    }
    path.display().to_string()
}

/// Why an import is of a kind that cannot be followed: the field, the code, what is wrong and the mend.
pub(crate) fn refusal(
    import: &MotifImport,
) -> Option<(&'static str, Code, &'static str, &'static str)> {
    let MotifImport {
        motif,
        version,
        oci,
        auth,
        with: _,
    } = import;
    let text = motif.trim();
    let later = |field, what| {
        let mend = "copy the Motif beside this file and name the copy, or apply it to the cluster and name it there";
        Some((field, Code::NotSupportedYet, what, mend))
    };
    if text.is_empty() {
        let mend = "name a Motif of the cluster, or a file";
        return Some(("motif", Code::Empty, "this is empty", mend));
    }
    if text.contains("{{") {
        let mend = "the Motif is read before any resource exists: write its name out";
        return Some(("motif", Code::NotATemplate, "this is not a template", mend));
    }
    let is_registry = text.starts_with("oci://") || text.contains('@') && !text.contains('/');
    if *oci == Some(true) || is_registry {
        later("motif", "Motifs from registries are not supported yet")
    } else if text.contains("://") || text.contains('@') {
        later(
            "motif",
            "Motifs from Git and other servers are not supported yet",
        )
    } else if version.is_some() {
        later("version", "versions of Motifs are not supported yet")
    } else if auth.is_some() {
        later("auth", "Motifs from servers are not supported yet")
    } else {
        None
    }
}
