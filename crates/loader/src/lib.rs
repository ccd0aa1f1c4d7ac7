//! Documents of files and clusters to compiled Katalogs, with what they refer to.
//!
//! ```text
//!  path ── files ──► documents, Motifs, suites
//!            └── compose ──► the sources of files, and the other inputs of their compilation
//!                  └── compilation ──► drives a `Compilation` on threads for blocking work
//! ```

pub mod compilation;
pub mod compose;
pub mod files;
