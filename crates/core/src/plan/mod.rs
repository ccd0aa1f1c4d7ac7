//! What a Katalog compiles to: immutable plans whose strings are parsed and whose shorthand is expanded.
//!
//! ```text
//!  KatalogSpec ── compile ──► Plan { operators: [Arc<OperatorPlan>] }   or Diagnostics, nothing in between
//!                              │
//!                              ├── rbac:  the rules that the plan needs
//!                              └── diff:  what changes for a running operator
//! ```
//!
//! A plan holds no name of a custom resource: it is compiled once and serves every instance.

mod types;

pub use types::*;
