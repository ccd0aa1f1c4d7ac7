//! Every Katalog that a document or an example shows compiles, without a warning; every template gives what is written
//! below it.

#[path = "samples/templates.rs"]
mod templates;

use std::{fs, path::Path};

use orkestra_core::{
    diagnostics::Diagnostics,
    document::read_stream,
    plan::{KatalogRef, Library, Schemas, compile},
};

/// Compiles the Katalogs of `text`; gives how many there were, or everything that is wrong with them.
fn compile_all(file: &str, text: &str) -> Result<usize, Diagnostics> {
    let (documents, warnings) = read_stream(file, text)?;
    assert!(warnings.is_empty(), "{file}: {warnings:?}");
    for document in &documents.katalogs {
        let reference = KatalogRef {
            namespace: "default".to_owned(),
            name: document.name.clone(),
        };
        let compiled = compile(
            &reference,
            &document.spec,
            &Schemas::default(),
            &Library::default(),
        );
        let (_, warnings) = compiled.map_err(|mut problems| {
            problems.locate(&document.tree, Some(file));
            problems
        })?;
        assert!(warnings.is_empty(), "{file}: {warnings:?}");
    }
    Ok(documents.katalogs.len())
}

/// The fenced YAML blocks of a Markdown text that are whole Katalogs.
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

#[test]
fn the_katalogs_that_documents_show_compile() {
    let mut shown = 0;
    let documents = fs::read_dir(root().join("docs")).unwrap();
    let mut files: Vec<_> = documents.map(|entry| entry.unwrap().path()).collect();
    // Their samples are executed with what is said of them: half are wrong, or not supported yet. See `mistakes.rs` and
    // `reference.rs`.
    let elsewhere = ["diagnostics.md", "katalog.md", "motif.md"];
    files.retain(|file| file.is_file() && !elsewhere.iter().any(|name| file.ends_with(name)));
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
fn the_katalogs_of_the_examples_compile() {
    let mut compiled = 0;
    for example in fs::read_dir(root().join("examples")).unwrap() {
        let file = example.unwrap().path().join("katalog.yaml");
        let text = fs::read_to_string(&file).unwrap();
        compiled += compile_all(&file.display().to_string(), &text).unwrap();
    }
    assert!(compiled > 0, "there is no example");
}
