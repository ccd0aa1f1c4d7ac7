//! The part of Orkestra without I/O: the Katalog language, its compilation to plans, and the reconcile pass.
//!
//! ```text
//!  text ── document ──► KatalogSpec ── compile ──► Plan ── reconcile ──► Cycle: the wanted state of a custom resource
//!            │ api: the types              ├── scope: a position in the document, and the names that it can use
//!            │                             ├── resources: expands shorthand to whole objects
//!            │                             ├── template: expressions and notes, over values
//!            │                             ├── definitions, schema: the types of fields and values
//!            │                             └── enrich: data that is added to children
//!            └── diagnostics: problems and their positions
//!  E2E documents ── e2e ──► calls, and the evaluation of their results
//!  reasons: the reasons of conditions and Events, each with its class and retry rule
//!  plan ── admission ──► verdicts about written objects, and policies of the API server; conversion ──► other versions
//!  bytes of the API server ── decode ──► objects, for records
//!  api ── reference ──► pages, `ork explain`, the schema for editors
//!  CRDs, manifests, charts ── scaffold ──► the draft of a Katalog, for `ork init`
//! ```
//!
//! The crate does no I/O, reads no clock and has no dependency on a Kubernetes client.

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
