//! Diagnostics of mistakes. One file in `inputs/mistakes` is one mistake of a user; the `.out` file with the same name has the
//! expected diagnostics. The samples of every diagnostic code are checked in the same way.
//!
//! `UPDATE=1 cargo test -p orkestra-compiler --test mistakes` writes the expected files again. Review them: is the position exactly
//! that of the mistake, is the message plain, does the hint name the fix?

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a case that cannot be read is a fault of the test"
)]

use std::{collections::BTreeSet, env, fs, path::Path, path::PathBuf};

use orkestra_compiler::{
    compile,
    compose::{Artifacts, Base, Composition, merge},
    scope::{Library, ReferenceKind},
};
use orkestra_language::{
    api::KatalogSpec,
    diagnostics::{Code, Diagnostic, Diagnostics},
    document::{
        MotifDocument, Source, parse_stream, read_katalog, read_komposer, read_motif, read_stream,
        read_what_can_be,
    },
};
use orkestra_object::value::Node;
use orkestra_plan::{
    KatalogRef,
    definitions::{CrdShape, Schemas},
};

/// Codes that are reported by the code that reads files, outside of this package. The tests of that code check their samples.
const OF_FILES: [Code; 5] = [
    Code::Unreadable,
    Code::SameNameTwice,
    Code::CrdFile,
    Code::RefusedDefinition,
    Code::NoStatusSubresource,
];

/// Codes of fields that are checked but not supported yet: their samples report that, too.
const OF_LATER: [Code; 2] = [Code::UnknownOperator, Code::DependencyCircle];

/// Codes of custom resources, whose samples are also checked there.
const OF_RESOURCES: [Code; 5] = [
    Code::NotOperated,
    Code::CannotRender,
    Code::RefusedResource,
    Code::RuleNotChecked,
    Code::RuleViolated,
];

/// Codes of objects in a cluster: their samples are merged as such objects.
const OF_CLUSTER: [Code; 1] = [Code::PathInCluster];

/// Returns the problems of a Komposer in a cluster before any source is fetched.
fn check_in_cluster(text: &str) -> Diagnostics {
    let stream = parse_stream("wrong.yaml", text);
    let (komposer, warnings) = read_komposer(&stream.sources[0]).unwrap();
    let namespace = "waters".to_owned();
    let composition = Composition::of_komposer(&komposer, Base::Cluster { namespace });
    let merged = merge(&composition, &Artifacts::new());
    let mut found = merged.err().unwrap_or_default();
    found.extend(warnings);
    found
}

/// Returns all problems of a text without a cluster: parsing, reading, compiling. Definitions in it are known to all of its
/// Katalogs, and `crdFile` names the last of them.
fn check(file: &str, text: &str) -> Diagnostics {
    let stream = parse_stream(file, text);
    let (definitions, others): (Vec<Source>, Vec<Source>) = stream
        .sources
        .into_iter()
        .partition(|source| text_at(source, "kind") == Some("CustomResourceDefinition"));
    let definitions: Vec<CrdShape> = definitions
        .iter()
        .map(|source| CrdShape::from_crd(&Node::from(&source.tree.to_json())).unwrap())
        .collect();
    let (motifs, others): (Vec<Source>, Vec<Source>) = others
        .into_iter()
        .partition(|source| text_at(source, "kind") == Some("Motif"));
    let mut found = stream.problems;
    let declared = motifs.len();
    let motifs: Vec<MotifDocument> = motifs
        .iter()
        .filter_map(|source| match read_motif(source) {
            Ok((motif, warnings)) => {
                found.extend(warnings);
                Some(motif)
            }
            Err(problems) => {
                found.extend(problems.0);
                None
            }
        })
        .collect();
    if others.is_empty() && motifs.is_empty() && found.is_empty() {
        return read_stream(file, text).unwrap_err();
    }
    let (komposers, others): (Vec<Source>, Vec<Source>) = others
        .into_iter()
        .partition(|source| text_at(source, "kind") == Some("Komposer"));
    for source in &komposers {
        found.extend(read_komposer(source).map_or_else(|problems| problems.0, |(_, found)| found));
    }
    // If a Motif cannot be read, other problems of a Katalog may only follow from that.
    let all_read = motifs.len() == declared;
    for source in &others {
        found.extend(if all_read {
            check_one(source, &definitions, &motifs).0
        } else {
            read_katalog(source).map_or_else(|problems| problems.0, |(_, found)| found)
        });
    }
    found.0.sort_by_key(|d| (d.line, d.column));
    found
}

fn check_one(source: &Source, definitions: &[CrdShape], motifs: &[MotifDocument]) -> Diagnostics {
    let mut schemas = Schemas::default();
    for shape in definitions {
        schemas.insert(shape.clone());
    }
    let (document, mut found) = read_what_can_be(source);
    let Some(document) = document else {
        return found;
    };
    if found.has_errors() {
        let library = Library::default();
        found.extend(compile::errors_in_templates(
            &document, &found, &schemas, &library,
        ));
        return found;
    }
    let warnings = found;
    for shape in definitions {
        for (name, _) in document
            .spec
            .crds
            .iter()
            .filter(|(_, entry)| entry.crd_file.is_some())
        {
            schemas.insert_file(name, shape.clone());
        }
    }
    let katalog = KatalogRef::new("gardens".to_owned(), document.name);
    let library = library(&document.spec, motifs);
    let compiled = compile::katalog(&katalog, &document.spec, &schemas, &library);
    let mut found = match compiled {
        Ok((_, warnings)) => Diagnostics(warnings),
        Err(problems) => problems,
    };
    found.locate(&document.tree, source.file.as_deref());
    found.extend(warnings);
    found
}

/// Returns the imports of a Katalog from the Motifs of its own file; there are no other Motifs.
fn library(spec: &KatalogSpec, motifs: &[MotifDocument]) -> Library {
    let mut library = Library::default();
    loop {
        let missing = library.missing(spec);
        if missing.is_empty() {
            return library;
        }
        for reference in missing {
            let given = motifs.iter().find(|motif| *motif.name == *reference.text);
            if let Some(motif) = given {
                library.put_motif(reference, motif);
                continue;
            }
            let kind = if reference.part == ReferenceKind::Motif {
                "Motif"
            } else {
                "file"
            };
            let why = format!("there is no {kind} `{}`", reference.text);
            library.put_absent(reference, why);
        }
    }
}

fn text_at<'a>(source: &'a Source, name: &str) -> Option<&'a str> {
    source.tree.get(name)?.as_str()
}

fn inputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/mistakes")
}

fn files(extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(inputs())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|end| end == extension))
        .collect();
    files.sort();
    files
}

/// Returns the line of a problem in an expected file.
fn line(problem: &Diagnostic) -> String {
    let unnamed = Diagnostic {
        file: None,
        ..problem.clone()
    };
    format!("{unnamed}\n")
}

#[test]
fn every_mistake_is_reported_at_its_place() {
    let mut wrong = Vec::new();
    for path in files("yaml") {
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = check(name, &fs::read_to_string(&path).unwrap());
        let got: String = found.iter().map(line).collect();
        let beside = path.with_extension("out");
        if env::var_os("UPDATE").is_some() {
            fs::write(&beside, &got).unwrap();
        }
        let unplaced =
            |problem: &&Diagnostic| problem.line.is_none() && problem.code != Code::NoDocument;
        if found.is_empty() {
            wrong.push(format!("== {name}: nothing is told"));
        }
        if let Some(problem) = found.iter().find(unplaced) {
            wrong.push(format!("== {name}: no position: {problem}"));
        }
        if fs::read_to_string(&beside).unwrap_or_default() != got {
            wrong.push(format!("== {name}\n{got}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let stems = |extension| -> BTreeSet<PathBuf> {
        let files = files(extension).into_iter();
        files.map(|file| file.with_extension("")).collect()
    };
    assert!(stems("yaml").len() >= 150);
    let stray: Vec<_> = stems("out").difference(&stems("yaml")).cloned().collect();
    assert!(stray.is_empty(), "{stray:?}");
}

/// The prefixes of fixtures with typing mistakes, and with the habits of users of other systems.
const TYPED: [&str; 16] = [
    "amount-",
    "cluster-scoped-",
    "compose-",
    "crossplane-",
    "duration-in-",
    "helm-",
    "image-",
    "kro-",
    "metacontroller-",
    "mount-",
    "native-",
    "port-",
    "refers-",
    "selects-",
    "sprig-",
    "when-expression",
];

#[test]
fn what_people_type_has_a_place_and_a_fix() {
    let mut seen = 0;
    for path in files("yaml") {
        let name = path.file_name().unwrap().to_str().unwrap();
        if !TYPED.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        seen += 1;
        let found = check(name, &fs::read_to_string(&path).unwrap());
        let is_complete = |problem: &Diagnostic| {
            problem.line.is_some() && problem.column.is_some() && problem.hint.is_some()
        };
        assert!(found.iter().any(is_complete), "{name}: {found}");
    }
    assert!(seen >= 120, "{seen}");
}

#[test]
fn nothing_is_said_of_what_only_looks_like_a_mistake() {
    let folder = inputs().with_file_name("valid");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = check(name, &fs::read_to_string(&path).unwrap());
        assert!(found.is_empty(), "{name}: {found}");
        seen += 1;
    }
    assert!(seen >= 8, "{seen}");
}

#[test]
fn every_wrong_sample_has_its_problem_and_no_other_and_every_correct_one_has_none() {
    let mut failures = Vec::new();
    let codes = Code::ALL.iter();
    for code in codes.filter(|code| !OF_RESOURCES.contains(code)) {
        let explained = code.explain();
        if !OF_FILES.contains(code) {
            let found = if OF_CLUSTER.contains(code) {
                check_in_cluster(explained.wrong)
            } else {
                check("wrong.yaml", explained.wrong)
            };
            let is_other = |problem: &&Diagnostic| {
                let besides = OF_LATER.contains(code) && problem.code == Code::NotSupportedYet;
                problem.code != *code && !besides
            };
            let is_reported = found.iter().any(|problem| problem.code == *code);
            if !is_reported || found.iter().any(|problem| is_other(&problem)) {
                failures.push(format!("{code:?}, wrong: {found}"));
            }
        }
        let mut found = check("right.yaml", explained.right);
        if OF_CLUSTER.contains(code) {
            found.extend(check_in_cluster(explained.right));
        }
        if !found.is_empty() {
            failures.push(format!("{code:?}, right: {found}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Samples of the seeds that are wrong as published, with the code of the problem.
const BROKEN_SEEDS: [(&str, Code); 5] = [
    ("seed-cross", Code::Syntax),
    ("seed-lost-indentation", Code::LostIndentation),
    ("seed-state-machine", Code::MissingDot),
    ("seed-state-machine", Code::NeverWritten),
    ("seed-status", Code::Syntax),
];

#[test]
fn nothing_is_reported_of_the_seeds_but_what_is_broken_and_what_is_not_built() {
    let folder = inputs().with_file_name("document");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if !stem.starts_with("seed-") || path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        seen += 1;
        let broken = || {
            let seeds = BROKEN_SEEDS.iter().filter(|(seed, _)| *seed == stem);
            seeds.map(|(_, code)| *code)
        };
        let found = check(&stem, &fs::read_to_string(&path).unwrap());
        // The definitions that they name are in separate files.
        let is_built = |problem: &&Diagnostic| {
            let later = [Code::NotSupportedYet, Code::NoApiTypes].contains(&problem.code);
            !later && !problem.message.contains("not supported yet")
        };
        for problem in found.iter().filter(is_built) {
            let is_known = broken().any(|code| code == problem.code);
            assert!(is_known && problem.hint.is_some(), "{problem}");
        }
        for code in broken() {
            assert!(found.iter().any(|problem| problem.code == code), "{stem}");
        }
    }
    assert!(seen > 15, "{seen}");
}
