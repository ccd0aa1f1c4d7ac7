//! The compilation of documents to plans.
//!
//! ```text
//!  document, and what it refers to ── compilation ──► Plan: the only road there
//!                                      ├── compose: the sources of Komposers, merged into one Katalog
//!                                      └── compile: a Katalog to a plan
//!                                            ├── scope: a position in the document, and the names that it can use
//!                                            └── resources: expands shorthand to whole objects
//! ```
//!
//! The crate does no I/O: a compilation asks for what it needs, and a driver answers.

pub mod compilation;
pub mod compile;
pub mod compose;
pub mod resources;
pub mod scope;
