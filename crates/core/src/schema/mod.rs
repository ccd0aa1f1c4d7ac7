//! What `OpenAPI` schemas say of values: those of custom resource definitions, and those of Kubernetes' own kinds.
//!
//! ```text
//!  kubernetes.bin ── BuiltIn (inflated as far as it is asked) ──┐
//!  openAPIV3Schema of a definition ─────────────────────────────┴─► Schema: one place in one of them
//!                                                                     │
//!                                    what templates make of it ──► Type: the kinds of values that may come
//! ```
//!
//! What a schema does not say is unknown, and of what is unknown nothing is said.

mod built_in;
mod kinds;
mod types;
mod view;

pub use built_in::{BuiltIn, BuiltInKind};
pub use kinds::Kinds;
pub use types::{Constant, NoField, Type};
pub use view::{Below, NO_FIELDS, PRESERVE, Schema, with_article};
pub(crate) use view::{EMBEDDED, INT_OR_STRING};
