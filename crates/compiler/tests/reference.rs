//! The reference of every field: its pages are current, its samples behave as described, and the schema for editors agrees with
//! the check of documents.
//!
//! `UPDATE=1 cargo test -p orkestra-compiler --test reference` writes the pages again.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests, too, fail by panicking"
)]

use std::path::{Path, PathBuf};
use std::{env, fs};

use jsonschema::Validator;
use orkestra_compiler::{compile, scope::Library};
use orkestra_language::diagnostics::{Code, Diagnostics, Severity};
use orkestra_language::document::{DocumentKind, parse_stream, read_stream};
use orkestra_language::reasons;
use orkestra_language::reference::{
    BLOCKS, PageBlock, explain, json_schema, katalog_page, komposer_page, motif_page, older_page,
};
use orkestra_plan::{KatalogRef, definitions::Schemas};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn assert_current(path: &str, expected: &str) {
    let file = root().join(path);
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, expected).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == expected,
        "{path} is stale; run the test again with UPDATE=1"
    );
}

#[test]
fn the_committed_pages_are_current() {
    assert_current("docs/reference/katalog.md", &katalog_page());
    assert_current("docs/reference/motif.md", &motif_page());
    assert_current("docs/reference/komposer.md", &komposer_page());
    assert_current("docs/reference/older-documents.md", &older_page());
    assert_current("docs/reference/reasons.md", &reasons::page());
}

/// The pages with the fields that work.
fn pages() -> [String; 3] {
    [katalog_page(), motif_page(), komposer_page()]
}

/// Fields that have no effect, and fields and words that are not supported, with the reason where there is one.
const OLDER: [(&str, &str); 6] = [
    ("crossAccess", "each entry of `spec.crds` has its own"),
    ("rollBackOnError", "the next reconcile pass continues"),
    ("notification", "Notifications about failures."),
    ("location", "Orkestra loads no Go code"),
    ("podTemplates", "declare the object under `custom`"),
    ("protocol", "`prometheus`, `redis`"),
];

#[test]
fn the_pages_have_what_works_and_one_page_has_the_rest() {
    let older = older_page();
    for (field, why) in OLDER {
        let row = |line: &str| line.contains(&format!("| `{field}` |")) && line.contains(why);
        assert!(older.lines().any(row), "{field}");
        for page in pages() {
            assert!(!page.lines().any(row), "{field}");
        }
    }
    for page in pages() {
        for note in [
            "accepted, no effect",
            "not supported yet",
            "| refused",
            "| warns |",
        ] {
            assert!(!page.contains(note), "{note}");
        }
    }
}

#[test]
fn the_schema_offers_what_works() {
    let schema = json_schema(DocumentKind::Katalog).unwrap();
    let properties = |name: &str| schema["$defs"][name]["properties"].clone();
    for name in ["providers", "rollback"] {
        assert!(properties("OperatorBox").get(name).is_none(), "{name}");
    }
    assert!(properties("OperatorBox").get("onReconcile").is_some());
    assert!(!schema.to_string().contains("accepted, no effect"));
    assert!(!schema.to_string().contains("not supported yet"));
}

/// Returns all problems that reading and compiling report.
fn problems(block: &PageBlock) -> Diagnostics {
    let (documents, warnings) = match read_stream("sample.yaml", block.sample) {
        Ok(read) => read,
        Err(problems) => return problems,
    };
    let mut all = Diagnostics(warnings);
    // Sources are merged before a Katalog is compiled.
    let katalogs = documents.katalogs.into_iter();
    let katalogs = katalogs.filter(|document| document.spec.sources.is_none());
    for document in katalogs {
        let reference = KatalogRef::new("default".to_owned(), document.name.clone());
        match compile::katalog(
            &reference,
            &document.spec,
            &Schemas::default(),
            &Library::default(),
        ) {
            Ok((_, warnings)) => all.extend(warnings),
            Err(problems) => all.extend(problems),
        }
    }
    all
}

/// Blocks whose samples need another file: a Motif.
const NOT_ALONE: [&str; 1] = ["Imports"];

#[test]
fn every_sample_does_what_its_block_says() {
    for block in BLOCKS
        .iter()
        .filter(|block| !NOT_ALONE.contains(&block.title))
    {
        let says_later = block_is_later(block);
        let found = problems(block);
        let later = found
            .iter()
            .filter(|problem| problem.code == Code::NotSupportedYet);
        assert_eq!(later.count() > 0, says_later, "{}: {found}", block.title);
        let others = found
            .iter()
            .filter(|problem| problem.code != Code::NotSupportedYet);
        assert_eq!(others.count(), 0, "{}: {found}", block.title);
    }
}

fn block_is_later(block: &PageBlock) -> bool {
    let all = pages().concat() + &older_page();
    let section = all
        .split(&format!("\n## {}\n", block.title))
        .nth(1)
        .unwrap();
    let head = section.split("```").next().unwrap();
    head.contains("**not supported yet**")
}

fn validators() -> [(DocumentKind, Validator); 3] {
    [
        DocumentKind::Katalog,
        DocumentKind::Motif,
        DocumentKind::Komposer,
    ]
    .map(|kind| {
        let schema = json_schema(kind).unwrap();
        (kind, jsonschema::draft202012::new(&schema).unwrap())
    })
}

/// Like [`said`], without the errors about fields on the page of older documents, which editors do not offer.
fn said_of_current(validators: &[(DocumentKind, Validator)], text: &str) -> Vec<String> {
    let of_page = older_page();
    let is_older = |error: &String| {
        let names = error.split_once("('").map(|(_, names)| names);
        let mut names = names.unwrap_or_default().split('\'').step_by(2);
        names.all(|name| of_page.contains(&format!("| `{name}` |")))
    };
    let mut said = said(validators, text);
    said.retain(|error| !error.contains("Additional properties") || !is_older(error));
    said
}

/// Returns the errors that the schema for editors reports for the documents of a text.
fn said(validators: &[(DocumentKind, Validator)], text: &str) -> Vec<String> {
    let mut said = Vec::new();
    for source in parse_stream("file.yaml", text).sources {
        let kind = DocumentKind::of(&source);
        let Some((_, validator)) = validators.iter().find(|(known, _)| Some(*known) == kind) else {
            continue;
        };
        let object = source.tree.to_json();
        said.extend(
            validator
                .iter_errors(&object)
                .map(|error| format!("{}: {error}", error.instance_path())),
        );
    }
    said
}

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|end| end == "yaml") {
            found.push(path);
        }
    }
}

#[test]
fn the_schema_takes_all_samples_and_examples() {
    let validators = validators();
    let mut files = Vec::new();
    yaml_files(&root().join("docs/reference/samples"), &mut files);
    yaml_files(&root().join("examples"), &mut files);
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/document");
    let broken = ["seed-lost-indentation.yaml"];
    let mut inputs = Vec::new();
    yaml_files(&seeds, &mut inputs);
    files.extend(inputs.into_iter().filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("seed-") && !broken.contains(&name)
    }));
    assert!(files.len() > 60);
    for file in files {
        let said = said_of_current(&validators, &fs::read_to_string(&file).unwrap());
        assert!(said.is_empty(), "{}: {said:#?}", file.display());
    }
}

/// A mistake that a schema can detect is reported by the check and by the schema.
#[test]
fn the_schema_refuses_what_the_check_refuses() {
    let validators = validators();
    let seen = [
        Code::UnknownField,
        Code::WrongShape,
        Code::Missing,
        Code::OutOfRange,
        Code::UnknownWord,
    ];
    let mistakes = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/inputs/mistakes");
    let mut files = Vec::new();
    yaml_files(&mistakes, &mut files);
    let mut compared = 0;
    for file in files {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let Err(problems) = read_stream(&name, &text) else {
            continue;
        };
        let is_seen = problems.iter().any(|problem| {
            problem.severity == Severity::Error
                && seen.contains(&problem.code)
                && !problem.message.ends_with("has no value")
        });
        // For the schema, a null value is the same as an absent field.
        let is_null = name == "envelope-crds-empty.yaml";
        let is_parsed = !problems.iter().any(|problem| problem.code == Code::Syntax);
        let sources = parse_stream(&name, &text).sources;
        let has_kind = sources
            .iter()
            .all(|source| DocumentKind::of(source).is_some());
        if is_seen && is_parsed && has_kind && !is_null {
            compared += 1;
            assert!(!said(&validators, &text).is_empty(), "{name}: {problems}");
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn templates_stand_wherever_a_value_may() {
    let validators = validators();
    let text =
        fs::read_to_string(root().join("docs/reference/samples/kinds/deployments.yaml")).unwrap();
    assert!(text.contains("port: 8080"));
    assert_eq!(
        said(
            &validators,
            &text.replace("port: 8080", "port: \"{{ .spec.port }}\"")
        ),
        [""; 0]
    );
    assert_ne!(
        said(&validators, &text.replace("port: 8080", "port: [8080]")),
        [""; 0]
    );
    assert_ne!(
        said(&validators, &text.replace("port: 8080", "prot: 8080")),
        [""; 0]
    );
}

#[test]
fn every_definition_of_the_schema_is_used_and_says_what_it_is() {
    for kind in [
        DocumentKind::Katalog,
        DocumentKind::Motif,
        DocumentKind::Komposer,
        DocumentKind::E2e,
    ] {
        let schema = json_schema(kind).unwrap();
        let text = schema.to_string();
        let definitions = schema["$defs"].as_object().unwrap();
        assert!(definitions.len() > 20);
        for (name, definition) in definitions {
            assert!(text.contains(&format!("#/$defs/{name}\"")), "{name}");
            assert!(definition["description"].is_string(), "{name}");
        }
    }
}

#[test]
fn fields_are_explained_however_they_are_written() {
    let paths = [
        "katalog.spec.crds.operatorBox.reconciler.workers",
        "spec.crds.operatorbox.RECONCILER.workers",
        "Katalog.spec.crds.<name>.operatorBox.reconciler.workers",
        "spec.crds.website.operatorBox.reconciler.workers",
    ];
    let all = paths.map(|path| explain(path, false).unwrap());
    assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
    for part in [
        "spec.crds.<name>.operatorBox.reconciler.workers <integer>",
        "Default `3`",
        "at least 1, at most 1000",
    ] {
        assert!(all[0].contains(part), "{part}: {}", all[0]);
    }
    let child = explain("spec.crds.operatorBox.onCreate.deployments[].image", false).unwrap();
    let numbered = explain("spec.crds.operatorBox.onCreate.deployments.0.image", false);
    assert_eq!(numbered.unwrap(), child);
    assert_eq!(
        child,
        explain("spec.crds.operatorBox.onCreate.deployments.image", false).unwrap()
    );
    assert!(child.contains("It is required."));
    assert!(
        explain("motif.inputs.type", false)
            .unwrap()
            .contains("Words: string, int, bool.")
    );
    assert!(
        explain("komposer.sources.git.ref", false)
            .unwrap()
            .contains("Branch, tag or commit.")
    );
}

#[test]
fn a_wrong_path_is_reported_with_what_is_meant() {
    for (path, at, hint) in [
        ("katalog.spec.crdz", "Katalog.spec", "did you mean `crds`?"),
        (
            "spec.crds.operatorBx",
            "Katalog.spec.crds.<name>",
            "did you mean `operatorBox`?",
        ),
        (
            "operatorBox",
            "Katalog",
            "it is at `spec.crds.<name>.operatorBox`",
        ),
        (
            "motif.inputs.required.deep",
            "Motif.inputs.required",
            "there are no fields below it",
        ),
    ] {
        let error = explain(path, false).unwrap_err();
        assert_eq!(
            (error.at.as_str(), error.hint.as_str()),
            (at, hint),
            "{path}"
        );
    }
}

#[test]
fn the_tree_names_every_field_once() {
    let tree = explain("katalog", true).unwrap();
    let fields = tree.lines().count();
    assert!((500..5000).contains(&fields), "{fields}");
    for line in [
        "  spec <KatalogSpec>, required",
        "reconciler <Reconciler>",
        "not supported yet",
        ", as spec.",
    ] {
        assert!(tree.contains(line), "{line}");
    }
    assert!(
        explain("spec.crds.operatorBox.status", true)
            .unwrap()
            .contains("fields <list of StatusField>")
    );
}
