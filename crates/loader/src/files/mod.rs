//! Katalog files: found, read, checked and compiled, without a cluster.
//!
//! ```text
//!  paths ── find ──► TextFile ── parse ──► documents ── check ──► Compiled (a plan each) and Diagnostics
//!                                             │  ▲
//!                                             └──┴─ the files that they reference: crdFile, Motifs, includes
//! ```

mod check;
mod find;
mod library;
mod resources;
pub mod suites;
#[cfg(test)]
mod tests;
mod validate;

pub use self::{
    check::{Checked, Compiled, beside, check},
    find::{STDIN, TextFile, find, read_text},
    library::motifs,
    validate::{Validated, validate, validate_with},
};
pub use self::{
    check::{Checking, crd, finish_all, gather_all, in_order, start},
    find::without_katalog,
    resources::check_schema,
    validate::{is_ours, is_relevant},
};

use orkestra_language::api::KatalogSpec;
use orkestra_plan::definitions::generated_crds;

/// Returns the definitions that the entries of a Katalog declare with `schema`, as a YAML stream in the order of the kinds. Equal
/// Katalogs give equal text.
///
/// # Errors
/// One cannot be written as YAML.
pub fn definitions_yaml(spec: &KatalogSpec) -> Result<String, serde_saphyr::ser::Error> {
    let crds = generated_crds(spec);
    let mut text = String::new();
    for generated in &crds {
        text.push_str("---\n");
        text.push_str(&serde_saphyr::to_string(&generated.crd)?);
    }
    Ok(text)
}
