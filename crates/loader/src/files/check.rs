//! Compiles documents to plans, with the files that they reference.

use std::{panic::resume_unwind, path::Path};

use orkestra_compiler::compilation::{
    Compilation, CompilationResult, CompilationStep, DocumentSite, RefusedDocument,
};
use orkestra_e2e::read_e2e;
use orkestra_language::{
    diagnostics::Diagnostics,
    document::{DocumentKind, Source, read_simulate},
};
use orkestra_object::value::Node;
use orkestra_plan::definitions::{CrdShape, NotACrd};

use crate::{
    compilation::{DriveError, finish, gather},
    compose::FileInputs,
};

pub use orkestra_compiler::compilation::{CompiledKatalog as Compiled, beside};

/// The result of checking documents.
#[derive(Debug, Default)]
pub struct Checked {
    /// The Katalogs that can run, in order.
    pub katalogs: Vec<Compiled>,
    /// All problems of all documents, including warnings, each with its position, in the order of the file.
    pub problems: Diagnostics,
}

/// A document that is being checked.
#[derive(Debug)]
pub enum Checking {
    /// A Katalog, a Komposer or a Motif.
    Compiling(Box<Compilation>),
    /// The problems of another document.
    Read(Diagnostics),
}

/// Checks the Katalogs, Komposers and Motifs of one file and compiles the valid Katalogs and Komposers.
///
/// `path` is the file: references of a document are relative to it.
pub async fn check(path: &Path, sources: &[Source], known: FileInputs<'_>) -> Checked {
    finish_all(path, start(path, sources, known), known).await
}

/// Starts to check documents.
pub fn start(path: &Path, sources: &[Source], known: FileInputs<'_>) -> Vec<Checking> {
    let start = |source: &Source| match DocumentKind::of(source) {
        Some(DocumentKind::Simulate) => Checking::Read(
            read_simulate(source).map_or_else(|found| found, |(_, found)| Diagnostics(found)),
        ),
        Some(DocumentKind::E2e) => Checking::Read(
            read_e2e(source).map_or_else(|found| found, |(_, found)| Diagnostics(found)),
        ),
        _ => {
            let compilation = Compilation::new(source.clone(), DocumentSite::File(path.to_owned()));
            Checking::Compiling(Box::new(compilation.under(known.rules())))
        }
    };
    sources.iter().map(start).collect()
}

/// Gathers what documents refer to, except for definitions.
pub async fn gather_all(checking: Vec<Checking>, known: FileInputs<'_>) -> Vec<Checking> {
    let mut gathered = Vec::with_capacity(checking.len());
    for document in checking {
        gathered.push(match document {
            Checking::Compiling(compilation) => {
                let (compilation, _) = unwound(gather(*compilation, &known, ()).await);
                Checking::Compiling(Box::new(compilation))
            }
            read @ Checking::Read(_) => read,
        });
    }
    gathered
}

/// Checks the documents of the file `path`.
pub async fn finish_all(path: &Path, checking: Vec<Checking>, known: FileInputs<'_>) -> Checked {
    let mut checked = Checked::default();
    for document in checking {
        match document {
            Checking::Compiling(compilation) => {
                let (_, step) = unwound(finish(*compilation, &known, ()).await);
                checked.take(step);
            }
            Checking::Read(problems) => checked.problems.extend(problems),
        }
    }
    in_order(&mut checked.problems, path);
    checked
}

/// Returns the result of a compilation of a file; a panic of the compiler continues here.
fn unwound<T>(driven: Result<T, DriveError<std::convert::Infallible>>) -> T {
    match driven {
        Ok(result) => result,
        Err(DriveError::Compiler(error)) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The result has no use once the runtime ends.
            Err(error) => resume_unwind(Box::new(error.to_string())),
        },
        Err(DriveError::Input(never)) => match never {},
    }
}

impl Checked {
    /// Takes the end of a compilation: where nothing waits for sources, it never waits.
    fn take(&mut self, step: CompilationStep) {
        let CompilationStep::Ended(result) = step else {
            return;
        };
        match *result {
            CompilationResult::Compiled(mut compiled) => {
                self.problems.extend(std::mem::take(&mut compiled.warnings));
                self.katalogs.push(*compiled);
            }
            CompilationResult::Motif(problems)
            | CompilationResult::Refused(RefusedDocument::Invalid(problems)) => {
                self.problems.extend(problems);
            }
            // The rules for files have neither.
            CompilationResult::Refused(
                RefusedDocument::NotLocked(_) | RefusedDocument::NotPermitted(_),
            ) => {}
        }
    }
}

/// Sorts problems by position, those of other files than `path` last.
pub fn in_order(problems: &mut Diagnostics, path: &Path) {
    let own = path.display().to_string();
    problems.0.sort_by_cached_key(|problem| {
        let other = problem.file.clone().filter(|file| *file != own);
        (other, problem.line, problem.column)
    });
}

/// Reads a document as a definition.
///
/// # Errors
/// As [`CrdShape::from_crd`].
pub fn crd(source: &Source) -> Result<CrdShape, NotACrd> {
    CrdShape::from_crd(&Node::from(&source.tree.to_json()))
}
