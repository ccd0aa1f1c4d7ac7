//! Paths to documents that test Katalogs: Simulates and E2Es.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use orkestra_language::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{Document, DocumentKind, Source, Tree, parse_stream},
};

use super::find;

/// What a path ends with that means a folder and everything below it.
const BELOW: &str = "...";

/// Reads a document; returns its warnings with it.
type Read<S> = fn(&Source) -> Result<(Document<S>, Vec<Diagnostic>), Diagnostics>;

/// A kind of such documents.
#[derive(Debug)]
pub struct SuiteKind<S> {
    /// The kind.
    pub document: DocumentKind,
    /// How one is read.
    pub read: Read<S>,
    /// What to do where a path has none.
    pub hint: &'static str,
}

/// A document and its file.
#[derive(Debug)]
pub struct LoadedDocument<S> {
    /// The path of the file.
    pub path: PathBuf,
    /// The document.
    pub document: Document<S>,
}

impl<S> LoadedDocument<S> {
    /// The problem with its place in the document.
    pub fn located(&self, problem: Diagnostic) -> Diagnostic {
        located(&self.document.tree, self.document.file.as_deref(), problem)
    }

    /// Whether `skip` has the document's name, its file, or a folder above its file.
    pub fn is_skipped(&self, skip: &[String]) -> bool {
        let whole = |path: &Path| fs::canonicalize(path).ok();
        let file = whole(&self.path);
        skip.iter().any(|skip| {
            let folder = whole(&without_dots(Path::new(skip)));
            let is_below = file.as_ref().zip(folder);
            *skip == self.document.name
                || is_below.is_some_and(|(file, folder)| file.starts_with(folder))
        })
    }
}

/// Where a path was named: in a document, or on the command line.
#[derive(Debug)]
pub struct PathOrigin {
    path: PathBuf,
    by: Option<(Tree, Option<String>, FieldPath)>,
}

impl PathOrigin {
    /// On the command line.
    pub fn given(path: &Path) -> Self {
        Self {
            path: without_dots(path),
            by: None,
        }
    }

    /// In a document, at `at`.
    pub fn imported<S>(path: &Path, by: &LoadedDocument<S>, at: FieldPath) -> Self {
        let document = &by.document;
        Self {
            path: without_dots(path),
            by: Some((document.tree.clone(), document.file.clone(), at)),
        }
    }
}

/// What was read.
#[derive(Debug, Default)]
pub struct Reading {
    /// What is wrong with the files; warnings too.
    pub problems: Diagnostics,
    /// Texts of the files by their name.
    pub texts: BTreeMap<String, String>,
    /// Every file that was read.
    pub files: BTreeSet<PathBuf>,
    seen: BTreeSet<PathBuf>,
}

impl Reading {
    /// The documents of one path that were not read yet; a path without any is a problem.
    pub fn read<S>(&mut self, kind: &SuiteKind<S>, named: &PathOrigin) -> Vec<LoadedDocument<S>> {
        let (path, is_folder) = (&named.path, named.path.is_dir());
        let is_seen = fs::canonicalize(path).is_ok_and(|path| self.seen.contains(&path));
        if is_seen && !is_folder {
            return Vec::new();
        }
        let (mut loaded, mut is_any) = (Vec::new(), false);
        for file in find(path, &mut self.seen) {
            let file = match file {
                Ok(file) => file,
                Err(problem) => {
                    is_any = true;
                    let problem = match &named.by {
                        Some((tree, file, at)) => {
                            let message = problem.message.clone();
                            let problem = Diagnostic::error(Code::Unreadable, at.clone(), message);
                            located(tree, file.as_deref(), problem)
                        }
                        None => *problem,
                    };
                    self.problems.push(problem);
                    continue;
                }
            };
            self.files.insert(file.path.clone());
            // A folder holds much that is no YAML, such as the templates of charts.
            if is_folder && !file.text.contains(kind.document.name()) {
                continue;
            }
            let stream = parse_stream(&file.name, &file.text);
            let mut found = stream.problems;
            for source in &stream.sources {
                if DocumentKind::of(source) != Some(kind.document) {
                    continue;
                }
                is_any = true;
                match (kind.read)(source) {
                    Ok((document, warnings)) => {
                        found.extend(warnings);
                        loaded.push(LoadedDocument {
                            path: file.path.clone(),
                            document,
                        });
                    }
                    Err(problems) => found.extend(problems),
                }
            }
            is_any |= found.has_errors();
            self.problems.extend(found);
            self.texts.insert(file.name, file.text);
        }
        if !is_any && !is_seen {
            self.problems.push(without_document(kind, named));
        }
        loaded
    }
}

/// `./...` is the folder.
fn without_dots(path: &Path) -> PathBuf {
    if path.file_name().is_some_and(|name| name == BELOW) {
        let parent = path.parent().unwrap_or(Path::new("."));
        let is_here = parent.as_os_str().is_empty();
        return if is_here {
            PathBuf::from(".")
        } else {
            parent.to_owned()
        };
    }
    path.to_owned()
}

fn located(tree: &Tree, file: Option<&str>, problem: Diagnostic) -> Diagnostic {
    let mut problems = Diagnostics::from(problem.clone());
    problems.locate(tree, file);
    problems.0.pop().unwrap_or(problem)
}

fn without_document<S>(kind: &SuiteKind<S>, named: &PathOrigin) -> Diagnostic {
    let message = format!("no {} in {}", kind.document.name(), named.path.display());
    if let Some((tree, file, at)) = &named.by {
        let problem = Diagnostic::error(Code::NoDocument, at.clone(), message);
        return located(tree, file.as_deref(), problem);
    }
    let problem = Diagnostic::error(Code::NoDocument, FieldPath::root(), message);
    let mut problem = problem.hint(kind.hint);
    problem.file = Some(named.path.display().to_string());
    problem
}
