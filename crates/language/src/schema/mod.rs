//! Information from `OpenAPI` schemas about values: schemas of custom resource definitions, and of Kubernetes' built-in kinds.
//!
//! ```text
//!  kubernetes.bin ── BuiltIn (inflated on demand) ──────────────┐
//!  openAPIV3Schema of a definition ─────────────────────────────┴─► Schema: one position in one of them
//!                                                                     │
//!                                  the result of template operations ──► Type: the kinds of values that are possible
//! ```
//!
//! Without a schema, nothing is known, and nothing is checked.

mod built_in;
mod kinds;
mod types;
mod view;

pub use built_in::{BuiltIn, BuiltInKind};
pub use kinds::Kinds;
pub use types::{Constant, NoField, Type};
pub use view::{EMBEDDED, INT_OR_STRING};
pub use view::{NO_FIELDS, NestedSchema, PRESERVE, Schema, with_article};
