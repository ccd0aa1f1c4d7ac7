//! `ork validate`: all checks of files that need no cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use orkestra_compiler::compile;
use orkestra_language::{
    api::names,
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{DocumentKind, Source, Stream, Tree, parse_stream},
};
use orkestra_plan::{
    GroupKind,
    definitions::{CrdShape, NotACrd, Schemas},
};

use super::{
    check::{Compiled, check, crd, in_order},
    find::{TextFile, find, without_katalog},
    library::motifs,
    resources::{OtherDocument, check_crd_files, check_definition, check_resources},
};
use crate::compose::{DiskFiles, Fetch, FileInputs};

/// The result of validating files.
#[derive(Debug, Default)]
pub struct Validated {
    /// The Katalogs that can run, in the order of the files.
    pub katalogs: Vec<Compiled>,
    /// All problems of all files, including warnings: by path as given, then in the order of the file.
    pub problems: Diagnostics,
    /// The texts of the files by name, for the source lines of problems.
    pub texts: BTreeMap<String, String>,
    others: Others,
}

/// What the files contain beside documents of Orkestra.
#[derive(Debug, Default)]
struct Others {
    /// The definitions.
    shapes: BTreeMap<GroupKind, CrdShape>,
    /// The documents that may be custom resources.
    documents: Vec<OtherDocument>,
    /// The names of files of folders that were not parsed, with the folder.
    unread: Vec<(String, PathBuf)>,
    /// The paths without a Katalog or a definition that is used, and whether they have definitions.
    useless: BTreeMap<PathBuf, bool>,
}

/// Checks the Katalogs of files, of folders and of standard input (`-`).
///
/// They are compiled with the definitions that they reference, and those among the files. Objects of other kinds are skipped,
/// except for custom resources, which are checked against their definitions and the rules of the Katalogs; a path without a
/// Katalog, a definition or a custom resource is a problem.
pub async fn validate(paths: &[PathBuf]) -> Validated {
    let mut validated = validate_with(paths, &DiskFiles).await;
    validated.check_resources();
    validated
}

/// Like [`validate`], with the sources of compositions from `fetch`, and without custom resources: see
/// [`Validated::check_resources`].
// Over 60 lines: the steps from paths to results, in order.
pub async fn validate_with(paths: &[PathBuf], fetch: &dyn Fetch) -> Validated {
    let mut validated = Validated::default();
    let (mut seen, mut schemas, mut groups) = (BTreeSet::new(), Schemas::default(), Vec::new());
    let mut given = Vec::new();
    for path in paths {
        let files = find(path, &mut seen).into_iter();
        let files: Vec<_> = files
            .map(|found| found.map(|file| validated.parse(file, path)))
            .collect();
        let sources = files.iter().flatten().flat_map(|file| &file.stream.sources);
        let shapes: Vec<CrdShape> = sources.filter_map(|source| crd(source).ok()).collect();
        let is_used = !shapes.is_empty();
        for shape in shapes {
            let kind = shape.group_kind();
            validated.others.shapes.insert(kind, shape.clone());
            schemas.insert(shape);
        }
        let sources = files.iter().flatten().flat_map(|file| &file.stream.sources);
        given.extend(motifs(sources));
        groups.push((path, files, is_used));
    }
    let mut useless = Vec::new();
    for (path, files, is_used) in groups {
        let mut is_something = files.is_empty();
        for file in files {
            match file {
                Ok(file) => {
                    let known = FileInputs {
                        schemas: &schemas,
                        motifs: &given,
                        fetch,
                        manages_definitions: false,
                    };
                    is_something |= validated.add(file, path, known).await;
                }
                Err(problem) => {
                    is_something = true;
                    validated.problems.push(*problem);
                }
            }
        }
        if !is_something {
            useless.push((path, is_used));
        }
    }
    // Definitions are useful only with Katalogs.
    let is_any = !validated.katalogs.is_empty() || validated.problems.has_errors();
    useless.retain(|(_, is_used)| !(*is_used && is_any));
    for (path, is_used) in useless {
        let missing = without_katalog(&path.display().to_string());
        validated.problems.push(missing);
        validated.others.useless.insert(path.clone(), is_used);
    }
    for katalog in &validated.katalogs {
        let (problems, texts) = check_crd_files(katalog, &mut seen);
        validated.problems.extend(problems);
        let texts = texts.into_iter().map(|file| (file.name, file.text));
        validated.texts.extend(texts);
    }
    validated.without_sources();
    validated
}

/// True if a text may contain something of Orkestra, or a definition.
pub fn is_relevant(text: &str) -> bool {
    WORDS.iter().any(|word| text.contains(word))
}

/// A file and its documents.
struct Parsed {
    name: String,
    path: PathBuf,
    stream: Stream,
}

/// Every relevant document contains one of these words: parts of names that are unlikely to be misspelled all at once.
const WORDS: [&str; 5] = [
    "orkestra.",
    "Katalog",
    "Komposer",
    "Motif",
    "CustomResourceDefinition",
];

impl Validated {
    /// Checks the custom resources among the files: against the definitions of their kinds, and by the rules of the Katalogs.
    pub fn check_resources(&mut self) {
        let groups: BTreeSet<String> = (self.others.shapes.keys())
            .map(|kind| kind.group.to_string())
            .chain(self.katalogs.iter().flat_map(|katalog| {
                let operators = katalog.plan.operators.iter();
                operators.map(|operator| operator.resource.group.to_string())
            }))
            .filter(|group| !group.is_empty())
            .collect();
        for (name, given) in std::mem::take(&mut self.others.unread) {
            let text = self
                .texts
                .get(&name)
                .map(String::as_str)
                .unwrap_or_default();
            // The template of a chart is not YAML.
            if text.contains("{{") || !groups.iter().any(|group| text.contains(group)) {
                continue;
            }
            let Stream { sources, problems } = parse_stream(&name, text);
            self.problems.extend(problems);
            self.others.add(&given, sources);
        }
        let others = std::mem::take(&mut self.others);
        let (problems, used) = check_resources(&self.katalogs, &others.shapes, &others.documents);
        for problem in problems {
            if !self.problems.0.contains(&problem) {
                self.problems.push(problem);
            }
        }
        // Definitions are useful with custom resources, too.
        let is_useful = |path: &PathBuf, has_definitions: bool| {
            used.contains(path) || (has_definitions && !used.is_empty())
        };
        for (path, _) in (others.useless.iter()).filter(|(path, has)| is_useful(path, **has)) {
            let missing = without_katalog(&path.display().to_string());
            self.problems.0.retain(|problem| *problem != missing);
        }
    }

    /// Parses a file that was found at `given`. A file of a folder that contains nothing of Orkestra is not parsed: it may be the
    /// template of a chart, which is not YAML.
    fn parse(&mut self, file: TextFile, given: &Path) -> Parsed {
        let is_read = is_named(&file.path, given) || is_relevant(&file.text);
        let stream = if is_read {
            parse_stream(&file.name, &file.text)
        } else {
            let unread = (file.name.clone(), given.to_owned());
            self.others.unread.push(unread);
            Stream::default()
        };
        self.texts.insert(file.name.clone(), file.text);
        Parsed {
            name: file.name,
            path: file.path,
            stream,
        }
    }

    /// Removes the Katalogs and Komposers that are sources of another one among the files: they run as a part of it.
    fn without_sources(&mut self) {
        let composed = self
            .katalogs
            .iter()
            .filter_map(|katalog| katalog.composed.as_ref());
        let sources = composed.flat_map(|composed| &composed.sources);
        let used: BTreeSet<PathBuf> = sources
            .filter_map(|source| fs::canonicalize(&source.url).ok())
            .collect();
        self.katalogs.retain(|katalog| {
            let file = katalog.document.file.as_ref();
            let file = file.and_then(|file| fs::canonicalize(file).ok());
            file.is_none_or(|file| !used.contains(&file))
        });
    }

    /// Checks one file; false if it contains nothing to check.
    ///
    /// `given` is the path that it was found at; `known` are the definitions and the Motifs of all files.
    async fn add(&mut self, file: Parsed, given: &Path, known: FileInputs<'_>) -> bool {
        let Stream { sources, problems } = file.stream;
        let mut found = problems;
        let is_named = is_named(&file.path, given);
        let (ours, others): (Vec<Source>, Vec<Source>) = sources
            .into_iter()
            .partition(|source| is_ours(source, is_named));
        for other in &others {
            if let Err(NotACrd::Field(field)) = crd(other) {
                let message = format!("the CustomResourceDefinition has no {field}");
                found.push(Diagnostic::error(Code::CrdFile, FieldPath::root(), message));
            }
            found.extend(check_definition(other));
        }
        let checked = check(&file.path, &ours, known).await;
        found.extend(checked.problems);
        for katalog in &checked.katalogs {
            let (spec, schemas) = (&katalog.document.spec, &katalog.schemas);
            let mut only = compile::only_from_files(spec, schemas);
            only.extend(compile::without_status_subresource(spec, schemas));
            if let Some(composed) = &katalog.composed {
                composed.locate(&mut only);
            }
            only.locate(&katalog.document.tree, Some(&file.name));
            found.extend(only);
        }
        for problem in &mut found.0 {
            problem.file.get_or_insert_with(|| file.name.clone());
        }
        in_order(&mut found, &file.path);
        let is_something = !ours.is_empty() || !found.is_empty();
        self.others.add(given, others);
        self.katalogs.extend(checked.katalogs);
        // A problem of a file that several Katalogs reference is reported once.
        for problem in found {
            if !self.problems.0.contains(&problem) {
                self.problems.push(problem);
            }
        }
        is_something
    }
}

impl Others {
    /// Adds the documents of a file that was found at `given`.
    fn add(&mut self, given: &Path, sources: Vec<Source>) {
        let documents = sources.into_iter().map(|source| OtherDocument {
            given: given.to_owned(),
            source,
        });
        self.documents.extend(documents);
    }
}

/// True if a file was named explicitly, or is standard input.
fn is_named(file: &Path, given: &Path) -> bool {
    given == file || file == Path::new("")
}

/// True if a document is one of Orkestra's. In a file that was named explicitly, this includes a document without a kind.
pub fn is_ours(source: &Source, is_named: bool) -> bool {
    let text = |field| source.tree.get(field).and_then(Tree::as_str);
    let group = |version: &str| version.split('/').next().map(str::to_owned);
    let groups = [names::API_VERSION, names::OLD_API_VERSION].map(group);
    let of_group = text("apiVersion").is_some_and(|version| groups.contains(&group(version)));
    of_group
        || DocumentKind::of(source).is_some()
        || (is_named && source.tree.get("kind").is_none())
}
