//! Loads the Simulates of paths, with their imports.

use std::{
    collections::{BTreeSet, VecDeque},
    fs,
    path::{Path, PathBuf},
};

use orkestra_core::{
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{DocumentKind, SimulateDocument, parse_stream, read_simulate},
};

use super::Simulated;
use crate::files::{beside, find};

/// The last segment of a path that stands for a folder and everything below it.
const BELOW: &str = "...";
/// The maximum number of Simulates in one run.
const MOST: usize = 1000;

/// A Simulate and its file.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) path: PathBuf,
    pub(super) document: SimulateDocument,
}

/// A path with its origin: a document, or the command line.
struct Named {
    path: PathBuf,
    by: Option<(SimulateDocument, FieldPath)>,
}

/// Reads all Simulates in the paths and their imports, each once.
pub(super) fn load(paths: &[PathBuf], simulated: &mut Simulated) -> Vec<Loaded> {
    let named = |path: &PathBuf| Named {
        path: without_dots(path),
        by: None,
    };
    let mut queue: VecDeque<Named> = paths.iter().map(named).collect();
    let (mut seen, mut loaded) = (BTreeSet::new(), Vec::new());
    while let Some(named) = queue.pop_front() {
        if loaded.len() > MOST {
            let message = format!("more than {MOST} Simulates");
            let problem = Diagnostic::error(Code::TooLarge, FieldPath::root(), message);
            simulated.problems.push(problem);
            break;
        }
        for found in read(&named, &mut seen, simulated) {
            let imports = found.document.spec.imports.iter().enumerate();
            for (at, import) in imports {
                let at = FieldPath::root().field("spec").field("imports").index(at);
                queue.push_back(Named {
                    path: without_dots(&beside(&found.path, import)),
                    by: Some((found.document.clone(), at)),
                });
            }
            loaded.push(found);
        }
    }
    loaded
}

/// Parses a text as a Simulate, as if it were in the file at `path`.
pub(super) fn of_text(path: &Path, text: &str, simulated: &mut Simulated) -> Option<Loaded> {
    let name = path.display().to_string();
    let stream = parse_stream(&name, text);
    simulated.problems.extend(stream.problems);
    simulated.texts.insert(name, text.to_owned());
    match read_simulate(stream.sources.first()?) {
        Ok((document, warnings)) => {
            simulated.problems.extend(warnings);
            Some(Loaded {
                path: path.to_owned(),
                document,
            })
        }
        Err(problems) => {
            simulated.problems.extend(problems);
            None
        }
    }
}

/// Removes the last segment `...` of a path: `./...` is the folder `.`.
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

/// Reads the Simulates of one path that were not read yet. A path without Simulates is an error.
fn read(named: &Named, seen: &mut BTreeSet<PathBuf>, simulated: &mut Simulated) -> Vec<Loaded> {
    let (path, is_folder) = (&named.path, named.path.is_dir());
    let is_seen = fs::canonicalize(path).is_ok_and(|path| seen.contains(&path));
    if is_seen && !is_folder {
        return Vec::new();
    }
    let (mut loaded, mut is_any) = (Vec::new(), false);
    for file in find(path, seen) {
        let file = match file {
            Ok(file) => file,
            Err(problem) => {
                is_any = true;
                let problem = match &named.by {
                    Some(by) => unreadable(by, &problem.message),
                    None => *problem,
                };
                simulated.problems.push(problem);
                continue;
            }
        };
        simulated.files.insert(file.path.clone());
        // A folder can contain files that are not YAML, such as the templates of charts.
        if is_folder && !file.text.contains(DocumentKind::Simulate.name()) {
            continue;
        }
        let stream = parse_stream(&file.name, &file.text);
        let mut found = stream.problems;
        for source in &stream.sources {
            if DocumentKind::of(source) != Some(DocumentKind::Simulate) {
                continue;
            }
            is_any = true;
            match read_simulate(source) {
                Ok((document, warnings)) => {
                    found.extend(warnings);
                    loaded.push(Loaded {
                        path: file.path.clone(),
                        document,
                    });
                }
                Err(problems) => found.extend(problems),
            }
        }
        is_any |= found.has_errors();
        simulated.problems.extend(found);
        simulated.texts.insert(file.name, file.text);
    }
    if !is_any && !is_seen {
        simulated.problems.push(without_simulate(named));
    }
    loaded
}

fn unreadable((document, at): &(SimulateDocument, FieldPath), why: &str) -> Diagnostic {
    let problem = Diagnostic::error(Code::Unreadable, at.clone(), why);
    located(document, problem)
}

/// Adds the position in the document to a problem.
pub(super) fn located(document: &SimulateDocument, problem: Diagnostic) -> Diagnostic {
    let mut problems = Diagnostics::from(problem.clone());
    problems.locate(&document.tree, document.file.as_deref());
    problems.0.pop().unwrap_or(problem)
}

fn without_simulate(named: &Named) -> Diagnostic {
    let message = format!("no Simulate in {}", named.path.display());
    if let Some((document, at)) = &named.by {
        let problem = Diagnostic::error(Code::NoDocument, at.clone(), message);
        return located(document, problem);
    }
    let problem = Diagnostic::error(Code::NoDocument, FieldPath::root(), message);
    let mut problem = problem.hint("`ork simulate init` writes one");
    problem.file = Some(named.path.display().to_string());
    problem
}
