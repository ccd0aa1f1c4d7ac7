//! The language of Katalogs: the API types, documents with positions, and what is said about them.
//!
//! ```text
//!  text ── document ──► KatalogSpec, KomposerSpec, MotifSpec, … (api)
//!            │ tree: values with their positions
//!            └── diagnostics: problems, their positions and codes
//!  api ── reference ──► pages, `ork explain`, the schema for editors
//!  CRDs, Kubernetes' own schemas ── schema ──► the types of fields
//! ```
//!
//! Nothing here evaluates a document: `orkestra-compiler` compiles it to a plan.

pub mod api;
pub mod cron;
pub mod diagnostics;
pub mod document;
pub mod enrich;
pub mod reasons;
pub mod reference;
pub mod schema;
pub mod tree;
pub mod window;
