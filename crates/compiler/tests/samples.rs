//! Samples: every Katalog in a document or an example compiles without a warning, and every template gives the result that is
//! written below it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a sample that cannot be read is a fault of the test"
)]

#[path = "samples/templates.rs"]
mod templates;

use std::{
    fs,
    path::{Path, PathBuf},
};

use orkestra_compiler::{compile, scope::Library};
use orkestra_language::{
    diagnostics::Diagnostics,
    document::{KatalogDocument, parse_stream, read_stream},
};
use orkestra_object::value::Node;
use orkestra_plan::{
    KatalogRef,
    definitions::{CrdShape, Schemas},
};

/// Compiles the Katalogs of `text`. Returns their number, or all problems.
fn compile_all(file: &str, text: &str) -> Result<usize, Diagnostics> {
    let (documents, warnings) = read_stream(file, text)?;
    assert!(warnings.is_empty(), "{file}: {warnings:?}");
    // Operators of sources are part of what is compiled, so the tests of `examples` merge those first.
    let whole = |document: &&KatalogDocument| document.spec.sources.is_none();
    for document in documents.katalogs.iter().filter(whole) {
        let reference = KatalogRef::new("default".to_owned(), document.name.clone());
        let (schemas, library) = (definitions(file, document), library(file, document));
        let compiled = compile::katalog(&reference, &document.spec, &schemas, &library);
        let (_, warnings) = compiled.map_err(|mut problems| {
            problems.locate(&document.tree, Some(file));
            problems
        })?;
        assert!(warnings.is_empty(), "{file}: {warnings:?}");
    }
    Ok(documents.katalogs.len())
}

/// Returns the definitions that the entries of a Katalog name, read from the folder of its file.
fn definitions(file: &str, katalog: &KatalogDocument) -> Schemas {
    let mut schemas = Schemas::default();
    for (name, entry) in &katalog.spec.crds {
        let Some(named) = &entry.crd_file else {
            continue;
        };
        let path = Path::new(file).with_file_name(named);
        let stream = parse_stream(named, &fs::read_to_string(path).unwrap());
        let crd = Node::from(&stream.sources[0].tree.to_json());
        schemas.insert_file(name, CrdShape::from_crd(&crd).unwrap());
    }
    schemas
}

/// Returns the imports of a Katalog, read from the folder of its file.
fn library(file: &str, katalog: &KatalogDocument) -> Library {
    let mut library = Library::default();
    loop {
        let missing = library.missing(&katalog.spec);
        if missing.is_empty() {
            return library;
        }
        for reference in missing {
            let from = reference.file.as_deref().unwrap_or(file);
            let path = Path::new(from).with_file_name(&*reference.text);
            match fs::read_to_string(&path) {
                Ok(text) => library.put_text(reference, &path.display().to_string(), &text),
                Err(error) => library.put_absent(reference, error.to_string()),
            }
        }
    }
}

/// Returns the fenced YAML blocks of a Markdown text that are complete Katalogs.
fn katalogs(markdown: &str) -> Vec<&str> {
    let blocks = markdown.split("```yaml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    blocks
        .filter(|block| block.contains("kind: Katalog"))
        .collect()
}

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the pages of `docs`, in all its folders.
fn documents() -> Vec<PathBuf> {
    let (mut folders, mut pages) = (vec![root().join("docs")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                pages.push(path);
            }
        }
    }
    pages
}

#[test]
fn the_katalogs_that_documents_show_compile() {
    let mut shown = 0;
    let mut files = documents();
    // The samples of these documents are half wrong or not supported yet; `mistakes.rs` and `reference.rs` check them. The sample
    // of composing.md is output of `ork render`, which a test of that command compares.
    let elsewhere = [
        "composing.md",
        "diagnostics.md",
        "katalog.md",
        "motif.md",
        "older-documents.md",
    ];
    files.retain(|file| !elsewhere.iter().any(|name| file.ends_with(name)));
    files.push(root().join("README.md"));
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.display().to_string();
        shown += katalogs(&text)
            .into_iter()
            .map(|block| compile_all(&name, block).unwrap())
            .sum::<usize>();
    }
    assert!(shown > 0, "no document shows a Katalog");
}

#[test]
fn each_system_that_people_come_from_has_a_table_and_a_sample_on_both_sides() {
    let text = fs::read_to_string(root().join("docs/learn/coming-from.md")).unwrap();
    let sections: Vec<&str> = text.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), 5);
    for section in sections {
        let name = section.lines().next().unwrap();
        let head = format!("\n| {name} | Orkestra |\n");
        let short = format!("\n| {} | Orkestra |\n", name.rsplit(' ').next().unwrap());
        assert!(
            section.contains(&head) || section.contains(&short),
            "{name}"
        );
        assert_eq!(katalogs(section).len(), 1, "{name}");
        assert!(section.contains("\nNot supported: "), "{name}");
        // The blocks of the other system are valid YAML, or Go.
        let blocks = section.split("```yaml\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        let theirs: Vec<&str> = blocks
            .filter(|block| !block.contains("kind: Katalog"))
            .collect();
        assert!(theirs.len() == 1 || section.contains("```go\n"), "{name}");
        for block in theirs {
            let stream = parse_stream(name, block);
            assert!(stream.problems.is_empty(), "{name}: {}", stream.problems);
        }
    }
}

#[test]
fn the_katalogs_of_the_examples_compile() {
    let mut compiled = 0;
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let file = example.unwrap().path().join("katalog.yaml");
        if !file.is_file() {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        compiled += compile_all(&file.display().to_string(), &text).unwrap();
    }
    assert!(compiled > 0, "there is no example");
}
