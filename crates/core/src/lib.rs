//! The pure half of Orkestra: the Katalog language, its compilation to plans, and the reconcile pass.
//!
//! ```text
//!  text ── document ──► KatalogSpec ── compile ──► Plan ── reconcile ──► what is wanted of one custom resource
//!            │ api: the types              ├── scope: a place in the document, and what is known there
//!            │                             ├── resources: shorthand to whole objects
//!            │                             ├── template: expressions and notes, over values
//!            │                             ├── definitions, schema: what fields take and give
//!            │                             └── enrich: what is added to children
//!            └── diagnostics: what is wrong, and where
//!  tests on a cluster ── e2e ──► calls, and what their answers come to
//!  reasons: why something is as it is, and what follows
//!  plan ── admission ──► verdicts about what is written, and policies of the API server; conversion ──► other versions
//!  bytes of the API server ── decode ──► objects, for records
//!  api ── reference ──► pages, `ork explain`, the schema for editors
//!  somebody's manifests ── scaffold ──► a Katalog to begin with, for `ork init`
//! ```
//!
//! Nothing here does I/O, reads a clock or knows a Kubernetes client.

pub mod admission;
pub mod api;
pub mod compile;
pub mod compose;
pub mod conversion;
pub mod cron;
pub mod decode;
pub mod definitions;
pub mod diagnostics;
pub mod document;
pub mod e2e;
pub mod enrich;
pub mod plan;
pub mod reasons;
pub mod reconcile;
pub mod reference;
pub mod resources;
pub mod scaffold;
pub mod schema;
pub mod scope;
pub mod template;
pub mod tree;
pub mod value;
pub mod window;
