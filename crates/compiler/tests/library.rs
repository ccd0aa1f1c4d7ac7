//! Katalogs that import from other files. One folder in `inputs/library/` is one case: its `katalog.yaml` is compiled with the
//! files that it names. The expected result is in the same folder.
//!
//! `UPDATE=1 cargo test -p orkestra-compiler --test library` writes the expected files again; read the diff.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a case that cannot be read is a fault of the test"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use orkestra_compiler::{
    compile,
    scope::{Library, beside},
};
use orkestra_language::{
    diagnostics::Diagnostics,
    document::{Documents, read_stream},
};
use orkestra_plan::{KatalogRef, Plan, definitions::Schemas, describe};
use serde_json::{Value, json};

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/inputs/library")
        .join(folder);
    let entries = fs::read_dir(folder).unwrap();
    let mut cases: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

/// Returns the imports of the first Katalog of `documents`, read from the folder of the case.
fn library(case: &Path, documents: &Documents) -> Library {
    let spec = &documents.katalogs[0].spec;
    let mut library = Library::default();
    loop {
        let missing = library.missing(spec);
        if missing.is_empty() {
            return library;
        }
        for reference in missing {
            let given = documents
                .motifs
                .iter()
                .find(|motif| *motif.name == *reference.text);
            if let Some(motif) = given {
                library.put_motif(reference, motif);
                continue;
            }
            let from = reference.file.as_deref().unwrap_or("katalog.yaml");
            let file = beside(from, &reference.text);
            match fs::read_to_string(case.join(&file)) {
                Ok(text) => library.put_text(reference, &file, &text),
                Err(_) => library.put_absent(reference, format!("there is no file {file}")),
            }
        }
    }
}

fn compile(case: &Path) -> Result<(Plan, Diagnostics), Diagnostics> {
    let text = fs::read_to_string(case.join("katalog.yaml")).unwrap();
    let (documents, mut found) = read_stream("katalog.yaml", &text)?;
    let katalog = &documents.katalogs[0];
    let reference = KatalogRef::new("gardens".into(), katalog.name.clone());
    let library = library(case, &documents);
    let located = |mut found: Diagnostics| {
        found.locate(&katalog.tree, Some("katalog.yaml"));
        found
    };
    let (plan, warnings) =
        compile::katalog(&reference, &katalog.spec, &Schemas::default(), &library)
            .map_err(located)?;
    found.extend(warnings);
    Ok((plan, located(Diagnostics(found))))
}

fn expect(case: &Path, name: &str, found: &str, failures: &mut Vec<String>) {
    let file = case.join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, found).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap_or_default();
    if expected != found {
        failures.push(format!("{} differs; found:\n{found}", file.display()));
    }
}

fn shown(plan: &Plan, warnings: &Diagnostics) -> String {
    let operators: Vec<Value> = plan
        .operators
        .iter()
        .map(|operator| {
            json!({
                "name": operator.name,
                "workers": operator.workers,
                "resync": operator.resync.as_secs(),
                "plan": describe::operator(operator).to_json(),
            })
        })
        .collect();
    let warnings: Vec<String> = warnings.iter().map(ToString::to_string).collect();
    serde_json::to_string_pretty(&json!({ "operators": operators, "warnings": warnings })).unwrap()
        + "\n"
}

#[test]
fn what_is_taken_from_elsewhere_becomes_part_of_the_plan() {
    let mut failures = Vec::new();
    for case in cases("plans") {
        match compile(&case) {
            Ok((plan, warnings)) => {
                expect(&case, "plan.json", &shown(&plan, &warnings), &mut failures);
            }
            Err(problems) => failures.push(format!("{}:\n{problems}", case.display())),
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn mistakes_are_reported_in_the_file_that_makes_them() {
    let mut failures = Vec::new();
    for case in cases("mistakes") {
        match compile(&case) {
            Ok((_, warnings)) => {
                failures.push(format!("{} compiles, with {warnings}", case.display()));
            }
            Err(problems) => {
                expect(
                    &case,
                    "problems.txt",
                    &format!("{problems}\n"),
                    &mut failures,
                );
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
