//! What a document refers to is looked up, and then it is compiled.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::inputs::{InputRequest, MotifAnswer, UsedMotifs};
use super::{Compilation, CompilationResult, DocumentSite, Moved, State, kinds_named};
use crate::compile;
use crate::compose::{Artifacts, OciReference, ResolvedComposition, refused_address};
use crate::scope::{self, Library, Reference, ReferenceKind};
use orkestra_language::api::names;
use orkestra_language::diagnostics::{Code, Diagnostic, Diagnostics, FieldPath};
use orkestra_language::document::{KatalogDocument, MotifDocument};

/// The file of a Motif in the artifact of a registry.
const MOTIF_FILE: &str = "motif.yaml";

/// A document whose references are being looked up.
#[derive(Debug)]
pub(crate) struct Resolving {
    pub(crate) document: ReadDocument,
    /// The problems of reading it. With an error it is compiled for further problems only.
    pub(crate) found: Diagnostics,
    pub(crate) library: Library,
    /// The Motifs of the cluster that it uses.
    pub(crate) motifs: UsedMotifs,
    /// The files that references lead to: the file of the reference, its text, and the file.
    pub(crate) links: Vec<(String, String, String)>,
}

/// A document that was read.
#[derive(Debug)]
pub(crate) enum ReadDocument {
    /// A Katalog.
    Katalog {
        document: Box<KatalogDocument>,
        /// The composition that it is the result of.
        composed: Option<Arc<ResolvedComposition>>,
        /// The artifacts of its sources.
        used: Artifacts,
        /// The digests that the document itself approves.
        approved: BTreeSet<String>,
    },
    /// A Motif.
    Motif(Box<MotifDocument>),
}

/// The document that a reference leads to.
enum Referenced {
    Document(Arc<MotifDocument>),
    Object(String, Arc<serde_json::Value>),
    Text(String, String),
    Absent(String),
}

impl Resolving {
    pub(crate) fn new(document: ReadDocument, found: Diagnostics) -> Self {
        Self {
            document,
            found,
            library: Library::default(),
            motifs: UsedMotifs::new(),
            links: Vec::new(),
        }
    }

    /// Returns the Katalog, and the composition that it is the result of.
    pub(crate) fn katalog(&self) -> Option<(&KatalogDocument, Option<&Arc<ResolvedComposition>>)> {
        match &self.document {
            ReadDocument::Katalog {
                document, composed, ..
            } => Some((document, composed.as_ref())),
            ReadDocument::Motif(_) => None,
        }
    }

    /// Returns the references that are not answered yet; those into artifacts of sources are answered at once.
    fn missing(&mut self) -> Vec<Reference> {
        loop {
            let (missing, composed) = match &self.document {
                ReadDocument::Katalog {
                    document, composed, ..
                } => (self.library.missing(&document.spec), composed.as_ref()),
                ReadDocument::Motif(motif) => (self.library.missing_of_motif(&motif.spec), None),
            };
            let Some(composed) = composed.filter(|_| !missing.is_empty()) else {
                return missing;
            };
            let others = composed.fill(&mut self.library, missing);
            if !others.is_empty() {
                return others;
            }
        }
    }

    fn put(&mut self, reference: Reference, found: Referenced) {
        match found {
            Referenced::Document(motif) => self.library.put_motif(reference, &motif),
            Referenced::Object(name, object) => {
                let called = format!("motif/{name}");
                self.library.put_object(reference, &called, &object);
                self.motifs.insert(name, Some(object));
            }
            Referenced::Text(file, text) => {
                let from = reference.file.as_deref().unwrap_or_default().to_owned();
                let link = (from, reference.text.to_string(), file.clone());
                self.links.push(link);
                self.library.put_text(reference, &file, &text);
            }
            Referenced::Absent(why) => self.library.put_absent(reference, why),
        }
    }

    /// Returns the files whose references must be locked: those of documents that require a lock, and what they refer to.
    fn locking(&self) -> BTreeSet<String> {
        let Some((_, Some(composed))) = self.katalog() else {
            return BTreeSet::new();
        };
        let mut files = composed.required_lock.files.clone();
        loop {
            let own = self.links.iter();
            let own = own.map(|(from, _, to)| (from, to));
            let inside = composed.includes.answers.iter();
            let inside = inside.map(|answer| (&answer.from, &answer.to));
            let reached = own.chain(inside).filter(|(from, _)| files.contains(*from));
            let reached: Vec<String> = reached
                .map(|(_, to)| to.clone())
                .filter(|to| !files.contains(to))
                .collect();
            if reached.is_empty() {
                return files;
            }
            files.extend(reached);
        }
    }

    /// Returns why a Motif of a registry may not be imported where it is.
    fn refusal(&self, reference: &Reference, locking: &BTreeSet<String>) -> Option<String> {
        let text = reference.text.trim();
        if reference.part != ReferenceKind::Motif || !scope::is_of_registry(text) {
            return None;
        }
        let from = reference.file.as_deref().unwrap_or_default();
        if locking.contains(from) && !is_pinned(text) {
            return Some(not_locked(text));
        }
        let (_, composed) = self.katalog()?;
        let of_registry =
            |(_, text, to): &(String, String, String)| to == from && scope::is_of_registry(text);
        let is_fetched = composed.is_some_and(|composed| composed.includes.has(from))
            || self.links.iter().any(of_registry);
        is_fetched.then(|| refused_address(from, text)).flatten()
    }

    /// Returns the references to registries that were resolved for documents without a lock, and are of one that requires it.
    fn unlocked(&self) -> Diagnostics {
        let files = self.locking();
        let unlocked = self.links.iter().filter(|(from, text, _)| {
            files.contains(from) && scope::is_of_registry(text) && !is_pinned(text)
        });
        let problems = unlocked.map(|(from, text, _)| Diagnostic {
            file: Some(from.clone()),
            ..Diagnostic::error(Code::NotFound, FieldPath::root(), not_locked(text))
        });
        Diagnostics(problems.collect())
    }
}

/// True if a reference names the digest of its content.
fn is_pinned(text: &str) -> bool {
    OciReference::parse(text).is_ok_and(|reference| reference.is_pinned())
}

fn not_locked(text: &str) -> String {
    format!(
        "`{text}` is not locked, and `spec.lock` is `required`: name its digest, as in `oci://host/path@sha256:…`"
    )
}

impl Compilation {
    /// Looks up everything that a document refers to; then compiles it.
    pub(crate) fn resolve(&mut self, mut resolving: Box<Resolving>) -> Moved {
        loop {
            let missing = resolving.missing();
            if missing.is_empty() {
                break;
            }
            let mut needed = Vec::new();
            let locking = resolving.locking();
            for reference in missing {
                if let Some(why) = resolving.refusal(&reference, &locking) {
                    resolving.put(reference, Referenced::Absent(why));
                    continue;
                }
                match self.look_up(&reference, &mut resolving.motifs) {
                    Ok(found) => resolving.put(reference, found),
                    Err(request) if needed.contains(&request) => {}
                    Err(request) => needed.push(request),
                }
            }
            if !needed.is_empty() {
                return Moved::Need(State::Resolving(resolving), needed);
            }
        }
        let needed = self.missing_definitions(&resolving);
        if !needed.is_empty() {
            return Moved::Need(State::Resolving(resolving), needed);
        }
        if let ReadDocument::Motif(motif) = &resolving.document {
            let mut found = compile::check_motif(&motif.spec, &resolving.library);
            found.locate(&motif.tree, self.source.file.as_deref());
            found.extend(resolving.found);
            return Moved::Ended(CompilationResult::Motif(found));
        }
        let named = resolving
            .library
            .trees()
            .map(|tree| kinds_named(&tree.to_json()));
        self.kinds.extend(named.flatten());
        let objects = resolving.motifs.values().flatten();
        self.kinds
            .extend(objects.flat_map(|motif| kinds_named(motif)));
        if let Some(schemas) = self.inputs.schemas_of(&self.kinds) {
            let schemas = schemas.clone();
            resolving.found.extend(resolving.unlocked());
            return self.compile(*resolving, schemas);
        }
        let needed = vec![InputRequest::Schemas(self.kinds.clone())];
        Moved::Need(State::Resolving(resolving), needed)
    }

    /// Returns the document that a reference leads to.
    ///
    /// # Errors
    /// The input that is needed first.
    fn look_up(
        &self,
        reference: &Reference,
        used: &mut UsedMotifs,
    ) -> Result<Referenced, InputRequest> {
        let text = reference.text.trim();
        match &self.site {
            DocumentSite::File(_) => self.look_up_file(reference, text),
            DocumentSite::Cluster(_) => self.look_up_object(reference, text, used),
        }
    }

    /// In a cluster there are Motifs by name only.
    fn look_up_object(
        &self,
        reference: &Reference,
        text: &str,
        used: &mut UsedMotifs,
    ) -> Result<Referenced, InputRequest> {
        let is_motif = reference.part == ReferenceKind::Motif;
        if is_motif && scope::is_of_registry(text) {
            let why = "Motifs of registries are read for files only: apply the Motif to the cluster, and import it by its name";
            return Ok(Referenced::Absent(why.to_owned()));
        }
        if !is_motif || !is_name(text) {
            let why = "files are not available in the cluster: apply a Motif that holds this, and import it by its name";
            return Ok(Referenced::Absent(why.to_owned()));
        }
        if let Some(running) = self.approvals().motif(text) {
            return Ok(Referenced::Object(text.to_owned(), Arc::clone(running)));
        }
        match self.inputs.motifs.get(text) {
            None => Err(InputRequest::Motif(text.to_owned())),
            Some(MotifAnswer::Object(object)) => {
                Ok(Referenced::Object(text.to_owned(), Arc::clone(object)))
            }
            Some(MotifAnswer::Document(motif)) => Ok(Referenced::Document(Arc::clone(motif))),
            Some(MotifAnswer::Absent(why)) => {
                used.insert(text.to_owned(), None);
                Ok(Referenced::Absent(why.clone()))
            }
        }
    }

    /// A Motif is found by its name among the files that are given, or by a reference in a registry; any other reference is a path,
    /// relative to the file that contains it.
    fn look_up_file(&self, reference: &Reference, text: &str) -> Result<Referenced, InputRequest> {
        let is_motif = reference.part == ReferenceKind::Motif;
        if is_motif {
            match self.inputs.motifs.get(text) {
                None => return Err(InputRequest::Motif(text.to_owned())),
                Some(MotifAnswer::Document(motif)) => {
                    return Ok(Referenced::Document(Arc::clone(motif)));
                }
                Some(MotifAnswer::Object(_) | MotifAnswer::Absent(_)) => {}
            }
        }
        if is_motif && scope::is_of_registry(text) {
            return self.look_up_registry(text);
        }
        if let Some(found) = self.beside_motif(reference, text) {
            return Ok(found);
        }
        let own = match &self.site {
            DocumentSite::File(path) => path.display().to_string(),
            DocumentSite::Cluster(_) => String::new(),
        };
        let file = scope::beside(reference.file.as_deref().unwrap_or(&own), text);
        let path = PathBuf::from(&file);
        match self.inputs.files.get(&path) {
            None => Err(InputRequest::File(path)),
            Some(Ok(text)) => Ok(Referenced::Text(file, text.clone())),
            Some(Err(_)) if is_motif && !text.contains(['/', '.']) => {
                let why = format!("there is no Motif `{text}` among the files, and no file {file}");
                Ok(Referenced::Absent(why))
            }
            Some(Err(why)) => Ok(Referenced::Absent(format!("cannot read {file}: {why}"))),
        }
    }

    fn look_up_registry(&self, text: &str) -> Result<Referenced, InputRequest> {
        let Some(motif) = self.inputs.artifacts.get(text) else {
            return Err(InputRequest::Artifact(text.to_owned()));
        };
        Ok(match motif {
            Ok(artifact) => match artifact.text(MOTIF_FILE) {
                Some(content) => Referenced::Text(artifact.file(MOTIF_FILE), content.to_owned()),
                None => Referenced::Absent(format!("`{text}` has no {MOTIF_FILE}")),
            },
            Err(why) => Referenced::Absent(why.clone()),
        })
    }

    /// Finds a file that a Motif of a registry names: it is in the same artifact.
    fn beside_motif(&self, reference: &Reference, text: &str) -> Option<Referenced> {
        let from = reference.file.as_deref()?;
        let mut artifacts = self.inputs.artifacts.values().flatten();
        let (name, root, artifact) = artifacts.find_map(|artifact| {
            let file = artifact.file(MOTIF_FILE);
            let root = file.strip_suffix(MOTIF_FILE)?.to_owned();
            let name = from.strip_prefix(&*root)?;
            Some((scope::beside(name, text), root, artifact))
        })?;
        Some(match artifact.text(&name) {
            Some(text) => Referenced::Text(artifact.file(&name), text.to_owned()),
            None => Referenced::Absent(format!("there is no file `{text}` in {root}")),
        })
    }
}

/// True if a reference is the name of an object, and not the path of a file.
fn is_name(text: &str) -> bool {
    let is_file = [".yaml", ".yml", ".json"]
        .iter()
        .any(|ending| text.ends_with(ending));
    !is_file && names::check_dns1123_subdomain(text).is_ok()
}
