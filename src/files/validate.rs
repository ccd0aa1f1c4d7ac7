//! `ork validate`: all checks of files that need no cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use orkestra_core::{
    api::names,
    compile,
    definitions::{CrdShape, NotACrd, Schemas},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{DocumentKind, Source, Stream, Tree, parse_stream},
};

use super::{
    check::{CheckContext, Compiled, check, crd, in_order},
    find::{TextFile, find, without_katalog},
    library::motifs,
};
use crate::compose::{DiskFiles, Fetch};

/// The result of validating files.
#[derive(Debug, Default)]
pub struct Validated {
    /// The Katalogs that can run, in the order of the files.
    pub katalogs: Vec<Compiled>,
    /// All problems of all files, including warnings: by path as given, then in the order of the file.
    pub problems: Diagnostics,
    /// The texts of the files by name, for the source lines of problems.
    pub texts: BTreeMap<String, String>,
}

/// Checks the Katalogs of files, of folders and of standard input (`-`).
///
/// They are compiled with the definitions that they reference, and those among the files. Objects of other kinds are skipped; a
/// path without a Katalog or a definition is a problem.
pub async fn validate(paths: &[PathBuf]) -> Validated {
    validate_with(paths, &DiskFiles).await
}

/// Like [`validate`], with the sources of compositions from `fetch`; [`validate`] reads those on disk.
pub async fn validate_with(paths: &[PathBuf], fetch: &dyn Fetch) -> Validated {
    let mut validated = Validated::default();
    let (mut seen, mut schemas, mut groups) = (BTreeSet::new(), Schemas::default(), Vec::new());
    let mut given = Vec::new();
    for path in paths {
        let files = find(path, &mut seen).into_iter();
        let files: Vec<_> = files
            .map(|found| found.map(|file| parse(file, path, &mut validated.texts)))
            .collect();
        let sources = files.iter().flatten().flat_map(|file| &file.stream.sources);
        let shapes: Vec<CrdShape> = sources.filter_map(|source| crd(source).ok()).collect();
        let is_used = !shapes.is_empty();
        for shape in shapes {
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
                    let known = CheckContext {
                        schemas: &schemas,
                        motifs: &given,
                        fetch,
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
    let useless = useless.into_iter();
    let missing = useless.map(|(path, _)| without_katalog(&path.display().to_string()));
    validated.problems.extend(missing);
    validated.without_sources();
    validated
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

/// Parses a file that was found at `given`. A file of a folder that contains nothing of Orkestra is not parsed: it may be the
/// template of a chart, which is not YAML.
fn parse(file: TextFile, given: &Path, texts: &mut BTreeMap<String, String>) -> Parsed {
    let is_read = is_named(&file.path, given) || WORDS.iter().any(|word| file.text.contains(word));
    let stream = if is_read {
        parse_stream(&file.name, &file.text)
    } else {
        Stream::default()
    };
    texts.insert(file.name.clone(), file.text);
    Parsed {
        name: file.name,
        path: file.path,
        stream,
    }
}

impl Validated {
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
    async fn add(&mut self, file: Parsed, given: &Path, known: CheckContext<'_>) -> bool {
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
        }
        let checked = check(&file.path, &ours, known).await;
        found.extend(checked.problems);
        for katalog in &checked.katalogs {
            let mut only = compile::only_from_files(&katalog.document.spec, &katalog.schemas);
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

/// True if a file was named explicitly, or is standard input.
fn is_named(file: &Path, given: &Path) -> bool {
    given == file || file == Path::new("")
}

/// True if a document is one of Orkestra's. In a file that was named explicitly, this includes a document without a kind.
fn is_ours(source: &Source, is_named: bool) -> bool {
    let text = |field| source.tree.get(field).and_then(Tree::as_str);
    let group = |version: &str| version.split('/').next().map(str::to_owned);
    let groups = [names::API_VERSION, names::OLD_API_VERSION].map(group);
    let of_group = text("apiVersion").is_some_and(|version| groups.contains(&group(version)));
    of_group
        || DocumentKind::of(source).is_some()
        || (is_named && source.tree.get("kind").is_none())
}
