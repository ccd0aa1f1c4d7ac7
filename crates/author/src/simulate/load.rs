//! Loads the Simulates of paths, with their imports.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
};

use orkestra_language::{
    api::SimulateSpec,
    diagnostics::{Code, Diagnostic, FieldPath},
    document::{DocumentKind, parse_stream, read_simulate},
};

use super::Simulated;
use orkestra_loader::files::{
    beside,
    suites::{self, PathOrigin, Reading, SuiteKind},
};

/// Most Simulates of one run.
const MOST: usize = 1000;
const KIND: SuiteKind<SimulateSpec> = SuiteKind {
    document: DocumentKind::Simulate,
    read: read_simulate,
    hint: "`ork simulate init` writes one",
};

/// A Simulate and its file.
pub(crate) type Loaded = suites::LoadedDocument<SimulateSpec>;

/// Reads all Simulates that the paths lead to, each once, but for those that are skipped.
pub(crate) fn load(paths: &[PathBuf], skip: &[String], simulated: &mut Simulated) -> Vec<Loaded> {
    let mut queue: VecDeque<PathOrigin> =
        paths.iter().map(|path| PathOrigin::given(path)).collect();
    let (mut reading, mut loaded) = (Reading::default(), Vec::new());
    while let Some(named) = queue.pop_front() {
        if loaded.len() > MOST {
            let message = format!("more than {MOST} Simulates");
            let problem = Diagnostic::error(Code::TooLarge, FieldPath::root(), message);
            reading.problems.push(problem);
            break;
        }
        for found in reading.read(&KIND, &named) {
            if found.is_skipped(skip) {
                continue;
            }
            let imports = found.document.spec.imports.iter().enumerate();
            for (at, import) in imports {
                let at = FieldPath::root().field("spec").field("imports").index(at);
                let path = beside(&found.path, import);
                queue.push_back(PathOrigin::imported(&path, &found, at));
            }
            loaded.push(found);
        }
    }
    simulated.problems.extend(reading.problems);
    simulated.texts.extend(reading.texts);
    simulated.files.extend(reading.files);
    loaded
}

/// Parses a text as a Simulate, as if it were in the file at `path`.
pub(crate) fn of_text(path: &Path, text: &str, simulated: &mut Simulated) -> Option<Loaded> {
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
