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
pub(crate) mod suites;
#[cfg(test)]
mod tests;
mod validate;

pub(crate) use self::{check::in_order, find::without_katalog, library::take_with};
pub use self::{
    check::{CheckContext, Checked, Compiled, beside, check},
    find::{STDIN, TextFile, find, read_text},
    library::{ResolvedReferences, motifs, take},
    validate::{Validated, validate, validate_with},
};
