//! The inputs that fuzzing has kept, as tests. `corpus/<target>/` holds one input per file.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a target reports what is wrong by panicking"
)]

#[path = "fuzz/mod.rs"]
mod targets;

use std::{fs, path::Path};

/// Runs a target with each input of its corpus.
fn replay(target: &str, run: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(target);
    let mut inputs = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        // Print the name, so that the output of a failed test names the input.
        println!("{}", file.display());
        run(&fs::read(&file).unwrap());
        inputs += 1;
    }
    assert!(inputs > 100, "{inputs} inputs");
}

#[test]
fn templates_of_the_corpus_keep_every_promise() {
    replay("template", targets::template);
}

#[test]
fn documents_of_the_corpus_keep_every_promise() {
    replay("document", targets::document);
}

#[test]
fn plans_of_the_corpus_keep_every_promise() {
    replay("plan", targets::plan);
}

#[test]
fn lists_of_the_corpus_keep_every_promise() {
    replay("list", targets::list);
}

#[test]
fn watches_of_the_corpus_keep_every_promise() {
    replay("watch", targets::watch);
}
