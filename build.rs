//! Records the commit of the sources: `ORK_COMMIT` if it is set, as by `make release`, else that of the checkout.

#[path = "build/git.rs"]
mod git;

use std::{env, path::Path};

fn main() {
    println!("cargo::rerun-if-env-changed=ORK_COMMIT");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build/git.rs");
    let given = env::var("ORK_COMMIT")
        .ok()
        .filter(|commit| !commit.is_empty());
    let root = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let checkout = given.is_none().then(|| git::Checkout::at(Path::new(&root)));
    let mut commit = given;
    if let Some(checkout) = checkout.flatten() {
        // Nothing else makes this run again: a commit only compiles this package once more.
        for file in &checkout.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        commit = checkout.commit;
    }
    let commit = commit.unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=ORK_BUILD_COMMIT={commit}");
}
