//! Loads E2Es from paths, including their imports and included expectations.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use orkestra_e2e::{gates, read_e2e, read_expectations};
use orkestra_language::{
    api::{E2eSpec, e2e::Expectation},
    diagnostics::{Code, Diagnostic, Diagnostics, FieldPath},
    document::{DocumentKind, parse_stream},
};

use super::E2eResults;
use orkestra_loader::files::{
    beside,
    suites::{self, PathOrigin, Reading, SuiteKind},
};

const KIND: SuiteKind<E2eSpec> = SuiteKind {
    document: DocumentKind::E2e,
    read: read_e2e,
    hint: "see docs/guides/testing.md",
};

/// A document, with included expectations inserted.
#[derive(Debug)]
pub(crate) struct LoadedTest {
    pub(crate) loaded: suites::LoadedDocument<E2eSpec>,
    /// The position of each expectation: `spec.expect[0]`, or a position in the included file.
    pub(crate) places: Vec<(PathBuf, FieldPath)>,
    pub(crate) imports: Vec<Imported>,
}

/// The imports of a document.
#[derive(Debug)]
pub(crate) struct Imported {
    pub(crate) suites: Vec<LoadedTest>,
    pub(crate) is_fresh: bool,
    pub(crate) wait: Duration,
}

impl LoadedTest {
    /// True if it contains a test itself.
    pub(crate) fn is_test(&self) -> bool {
        let spec = &self.loaded.document.spec;
        spec.katalog.is_some() || spec.custom.is_some()
    }
}

/// Reads all E2Es in the paths, each once, except skipped ones.
pub(crate) fn load(paths: &[PathBuf], skip: &[String], ran: &mut E2eResults) -> Vec<LoadedTest> {
    let mut reading = Reading::default();
    let named = paths.iter().map(|path| PathOrigin::given(path));
    let named: Vec<PathOrigin> = named.collect();
    let suites = named
        .iter()
        .flat_map(|named| below(named, skip, &mut reading));
    let suites = suites.collect();
    ran.problems.extend(reading.problems);
    ran.texts.extend(reading.texts);
    ran.files.extend(reading.files);
    suites
}

fn below(named: &PathOrigin, skip: &[String], reading: &mut Reading) -> Vec<LoadedTest> {
    let mut all = Vec::new();
    for mut loaded in reading.read(&KIND, named) {
        if loaded.is_skipped(skip) {
            continue;
        }
        let places = include(&mut loaded, reading);
        let mut imports = Vec::new();
        for (index, import) in loaded.document.spec.imports.iter().enumerate() {
            let at = FieldPath::root()
                .field("spec")
                .field("imports")
                .index(index);
            let named = PathOrigin::imported(&beside(&loaded.path, import.path()), &loaded, at);
            imports.push(Imported {
                suites: below(&named, skip, reading),
                is_fresh: import.is_fresh(),
                wait: import.wait(),
            });
        }
        all.push(LoadedTest {
            loaded,
            places,
            imports,
        });
    }
    all
}

/// Inserts the expectations of included files.
fn include(
    loaded: &mut suites::LoadedDocument<E2eSpec>,
    reading: &mut Reading,
) -> Vec<(PathBuf, FieldPath)> {
    let at = FieldPath::root().field("spec").field("expect");
    let declared = std::mem::take(&mut loaded.document.spec.expect);
    let (mut expect, mut places) = (Vec::new(), Vec::new());
    for (index, expected) in declared.into_iter().enumerate() {
        let at = at.index(index);
        let Some(file) = &expected.include else {
            expect.push(expected);
            places.push((loaded.path.clone(), at));
            continue;
        };
        let path = beside(&loaded.path, file);
        for (index, one) in read(loaded, &path, &at, reading).into_iter().enumerate() {
            let at = FieldPath::root().field("expect").index(index);
            if one.include.is_some() {
                let message = "an included file cannot include another file";
                let place = at.field("include");
                let mut problem = Diagnostic::error(Code::Exclusive, place, message);
                problem.file = Some(path.display().to_string());
                reading.problems.push(problem);
                continue;
            }
            expect.push(one);
            places.push((path.clone(), at));
        }
    }
    let is_included = places.iter().any(|(file, _)| *file != loaded.path);
    loaded.document.spec.expect = expect;
    if is_included {
        // The document's own expectations are checked already; the others have positions in another file.
        let found = gates(&loaded.document.spec).1;
        let own = loaded.path.display().to_string();
        let found = found.0.into_iter().map(|mut problem| {
            problem.file.get_or_insert_with(|| own.clone());
            problem
        });
        reading.problems.extend(found.collect::<Diagnostics>());
    }
    places
}

fn read(
    loaded: &suites::LoadedDocument<E2eSpec>,
    path: &Path,
    at: &FieldPath,
    reading: &mut Reading,
) -> Vec<Expectation> {
    let name = path.display().to_string();
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(why) => {
            let message = format!("cannot read {name}: {why}");
            let problem = Diagnostic::error(Code::Unreadable, at.field("include"), message);
            reading.problems.push(loaded.located(problem));
            return Vec::new();
        }
    };
    let stream = parse_stream(&name, &text);
    reading.problems.extend(stream.problems);
    reading.files.insert(path.to_owned());
    reading.texts.insert(name, text);
    let mut all = Vec::new();
    for source in &stream.sources {
        match read_expectations(source) {
            Ok((expected, warnings)) => {
                reading.problems.extend(warnings);
                all.extend(expected);
            }
            Err(problems) => reading.problems.extend(problems),
        }
    }
    all
}
