//! Compiles documents to plans, with the files that they reference.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use orkestra_core::{
    api::CrdEntry,
    compile::{self, Typed},
    compose::{Composition, ResolvedComposition},
    definitions::{CrdShape, NotACrd, Schemas},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{
        DocumentKind, KatalogDocument, MotifDocument, Source, parse_stream, read_motif,
        read_simulate, read_what_can_be,
    },
    e2e::read_e2e,
    plan::{Declaring, KatalogRef, Plan},
    scope::Library,
    value::Node,
};

use super::find::read_text;
use super::library::{ResolvedReferences, take, take_with};
use crate::compose::{self, Fetch};

/// The namespace of Katalogs from files, in labels of children and in paths of the HTTP API.
const NAMESPACE: &str = "default";

/// A Katalog that can run.
#[derive(Debug)]
pub struct Compiled {
    /// The declaration.
    pub document: KatalogDocument,
    /// The known custom resource definitions, including those of its `crdFile`s.
    pub schemas: Schemas,
    /// The referenced documents.
    pub library: Library,
    /// The compiled plan.
    pub plan: Arc<Plan>,
    /// The composition that the declaration is merged from; `None` if it has no sources.
    pub composed: Option<Arc<ResolvedComposition>>,
    /// The kind of the document that declares it.
    pub kind: Declaring,
}

/// What is known beside a file.
#[derive(Debug, Clone, Copy)]
pub struct CheckContext<'a> {
    /// Definitions, beside the `crdFile`s of a document.
    pub schemas: &'a Schemas,
    /// Motifs that Katalogs may name.
    pub motifs: &'a [MotifDocument],
    /// Fetches the sources of compositions.
    pub fetch: &'a dyn Fetch,
}

impl Compiled {
    /// Every expression with its type and position: those of the file in order, then those of Motifs.
    pub fn types(&self) -> Vec<Typed> {
        let (katalog, spec) = (&self.plan.katalog, &self.document.spec);
        let mut types = compile::types(katalog, spec, &self.schemas, &self.library);
        for expression in &mut types {
            expression.locate(&self.document.tree);
        }
        types.sort_by_cached_key(|typed| (typed.file.clone(), typed.line, typed.column));
        types
    }
}

/// The result of checking documents.
#[derive(Debug, Default)]
pub struct Checked {
    /// The Katalogs that can run, in order.
    pub katalogs: Vec<Compiled>,
    /// All problems of all documents, including warnings, each with its position, in the order of the file.
    pub problems: Diagnostics,
}

/// Checks the Katalogs, Komposers and Motifs of one file and compiles the valid Katalogs and Komposers.
///
/// `path` is the file: references of a document are relative to it.
pub async fn check(path: &Path, sources: &[Source], known: CheckContext<'_>) -> Checked {
    let mut checked = Checked::default();
    for source in sources {
        match compose::composition(source, &path.display().to_string()) {
            Ok(None) => {}
            Ok(Some((composition, warnings))) => {
                checked.problems.extend(warnings);
                checked.composed(path, &composition, known).await;
                continue;
            }
            Err(problems) => {
                checked.problems.extend(problems);
                continue;
            }
        }
        if let Some(found) = check_other(path, source, known).await {
            checked.problems.extend(found);
            continue;
        }
        let (document, found) = read_what_can_be(source);
        let Some(document) = document else {
            checked.problems.extend(found);
            continue;
        };
        let (schemas, library, unread) = surroundings(path, &document, known).await;
        if found.has_errors() {
            let inside = compile::errors_in_templates(&document, &found, &schemas, &library);
            checked.problems.extend(found);
            checked.problems.extend(inside);
            continue;
        }
        checked.problems.extend(found);
        let (plan, mut found) = compile(&document, &schemas, &library, unread);
        found.locate(&document.tree, source.file.as_deref());
        checked.problems.extend(found);
        checked.katalogs.extend(plan.map(|plan| Compiled {
            document,
            schemas,
            library,
            plan: Arc::new(plan),
            composed: None,
            kind: Declaring::Katalog,
        }));
    }
    in_order(&mut checked.problems, path);
    checked
}

/// Checks a Motif or a test; none for a Katalog.
async fn check_other(path: &Path, source: &Source, known: CheckContext<'_>) -> Option<Diagnostics> {
    match DocumentKind::of(source)? {
        DocumentKind::Motif => Some(check_motif(path, source, known).await),
        DocumentKind::Simulate => {
            Some(read_simulate(source).map_or_else(|found| found, |(_, found)| Diagnostics(found)))
        }
        DocumentKind::E2e => {
            Some(read_e2e(source).map_or_else(|found| found, |(_, found)| Diagnostics(found)))
        }
        _ => None,
    }
}

impl Checked {
    /// Fetches, merges and compiles a composition.
    async fn composed(&mut self, path: &Path, composition: &Composition, known: CheckContext<'_>) {
        let (resolved, warnings) = match compose::resolve(composition, known.fetch).await {
            Ok(resolved) => resolved,
            Err(problems) => return self.problems.extend(problems),
        };
        self.problems.extend(warnings);
        let (mut schemas, mut problems) = (known.schemas.clone(), Diagnostics::default());
        resolved.add_schemas(&mut schemas);
        let document = resolved.document.clone();
        for (name, entry) in &document.spec.crds {
            let at = crd_file_path(name);
            let is_inside = entry
                .crd_file
                .as_ref()
                .is_some_and(|file| resolved.manifest(&at, file).is_some());
            if !is_inside {
                let file = resolved.file_of(&at).map_or(path, Path::new);
                problems.extend(read_crd_file(file, name, entry, &mut schemas).await);
            }
        }
        let missing = |library: &Library| library.missing(&document.spec);
        let fill = |library: &mut Library, missing| resolved.fill(library, missing);
        let ResolvedReferences { library, .. } =
            take_with(path, missing, fill, (known.motifs, known.fetch)).await;
        resolved.locate(&mut problems);
        let (plan, mut found) = compile(&document, &schemas, &library, problems);
        found.locate(&document.tree, document.file.as_deref());
        self.problems.extend(found);
        self.katalogs.extend(plan.map(|plan| Compiled {
            document,
            schemas,
            library,
            plan: Arc::new(plan),
            composed: Some(Arc::new(resolved)),
            kind: composition.kind(),
        }));
    }
}

/// Returns the path of an entry's `crdFile`.
fn crd_file_path(entry: &str) -> FieldPath {
    let crds = FieldPath::root().field("spec").field("crds");
    crds.field(entry).field("crdFile")
}

/// Sorts problems by position, those of other files than `path` last.
pub(crate) fn in_order(problems: &mut Diagnostics, path: &Path) {
    let own = path.display().to_string();
    problems.0.sort_by_cached_key(|problem| {
        let other = problem.file.clone().filter(|file| *file != own);
        (other, problem.line, problem.column)
    });
}

/// Returns the problems of a Motif, independent of its imports.
async fn check_motif(path: &Path, source: &Source, known: CheckContext<'_>) -> Diagnostics {
    let (motif, warnings) = match read_motif(source) {
        Ok(read) => read,
        Err(problems) => return problems,
    };
    let missing = |library: &Library| library.missing_of_motif(&motif.spec);
    let ResolvedReferences { library, .. } = take(path, missing, known.motifs, known.fetch).await;
    let mut found = compile::check_motif(&motif.spec, &library);
    found.locate(&motif.tree, source.file.as_deref());
    found.extend(warnings);
    found
}

/// Compiles a valid Katalog; `problems` are those of the definitions that it references.
fn compile(
    document: &KatalogDocument,
    schemas: &Schemas,
    library: &Library,
    mut problems: Diagnostics,
) -> (Option<Plan>, Diagnostics) {
    let reference = KatalogRef::new(NAMESPACE.to_owned(), document.name.clone());
    let plan = match compile::katalog(&reference, &document.spec, schemas, library) {
        Ok((plan, warnings)) => {
            problems.extend(warnings);
            Some(plan)
        }
        // Without its definition, other problems of an entry may be consequences.
        Err(found) if problems.has_errors() => {
            let certain =
                |problem: &Diagnostic| problem.text_offset.is_some() || problem.file.is_some();
            problems.extend(found.into_iter().filter(certain));
            None
        }
        Err(found) => {
            problems.extend(found);
            None
        }
    };
    (plan.filter(|_| !problems.has_errors()), problems)
}

/// Returns the references of a Katalog: the definitions of its `crdFile`s in addition to known ones, the library, and the
/// problems of unreadable definitions.
async fn surroundings(
    path: &Path,
    document: &KatalogDocument,
    known: CheckContext<'_>,
) -> (Schemas, Library, Diagnostics) {
    let mut problems = Diagnostics::default();
    let mut schemas = known.schemas.clone();
    for (name, entry) in &document.spec.crds {
        if let Some(problem) = read_crd_file(path, name, entry, &mut schemas).await {
            problems.push(problem);
        }
    }
    let missing = |library: &Library| library.missing(&document.spec);
    let ResolvedReferences { library, .. } = take(path, missing, known.motifs, known.fetch).await;
    (schemas, library, problems)
}

/// Adds the definition in an entry's `crdFile`, or returns the problem.
async fn read_crd_file(
    katalog: &Path,
    name: &str,
    entry: &CrdEntry,
    schemas: &mut Schemas,
) -> Option<Diagnostic> {
    let file = entry.crd_file.as_ref().filter(|_| entry.is_enabled())?;
    let at = crd_file_path(name);
    if file.starts_with("https://") || file.starts_with("http://") {
        let error = Diagnostic::error(Code::NotSupportedYet, at, "a URL is not supported yet");
        return Some(error.hint("download the CRD and name the file"));
    }
    let path = beside(katalog, file);
    let text = match read_text(&path).await {
        Ok(text) => text,
        Err(why) => {
            let message = format!("cannot read {}: {why}", path.display());
            return Some(Diagnostic::error(Code::Unreadable, at, message));
        }
    };
    match definition(file, &text) {
        Ok(shape) => {
            schemas.insert_file(name, shape);
            None
        }
        Err(why) => {
            let message = format!("{file}: {why}");
            Some(Diagnostic::error(Code::CrdFile, at, message))
        }
    }
}

/// Returns the first definition in a text.
fn definition(file: &str, text: &str) -> Result<CrdShape, String> {
    let sources = parse_stream(file, text).sources;
    let mut why = "the file has no CRD".to_owned();
    for source in &sources {
        match crd(source) {
            Ok(shape) => return Ok(shape),
            Err(not) => why = not.to_string(),
        }
    }
    Err(why)
}

/// Reads a document as a definition.
///
/// # Errors
/// As [`CrdShape::from_crd`].
pub(super) fn crd(source: &Source) -> Result<CrdShape, NotACrd> {
    CrdShape::from_crd(&Node::from(&source.tree.to_json()))
}

/// Returns the path of a file that a Katalog references: relative to the Katalog.
pub fn beside(katalog: &Path, file: &str) -> PathBuf {
    katalog.parent().unwrap_or(Path::new("")).join(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_relative_to_their_katalog() {
        assert_eq!(
            beside(Path::new("a/k.yaml"), "crd.yaml"),
            Path::new("a/crd.yaml")
        );
        assert_eq!(
            beside(Path::new("k.yaml"), "./crd.yaml"),
            Path::new("./crd.yaml")
        );
        assert_eq!(
            beside(Path::new("a/k.yaml"), "/crd.yaml"),
            Path::new("/crd.yaml")
        );
    }
}
