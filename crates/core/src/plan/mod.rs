//! What a Katalog compiles to: immutable plans whose strings are parsed and whose shorthand is expanded.
//!
//! ```text
//!  KatalogSpec ── compile ──► Plan { operators: [Arc<OperatorPlan>] }   or Diagnostics, nothing in between
//!      Schemas ──►│            │
//!      Library ──►│            ├── rbac:  the rules that the plan needs
//!                              └── diff:  what changes for a running operator
//! ```
//!
//! `Library` holds the Motifs and included files, which `imports` and `profiles` take in; `typing` and `reads` look at what the
//! templates give and read.
//!
//! A plan holds no name of a custom resource: it is compiled once and serves every instance.

mod api_types;
mod chance;
mod checks;
mod children;
mod coerce;
mod compile;
mod conditions;
mod defaults;
pub mod describe;
mod diff;
mod imports;
mod keys;
pub(crate) mod kinds;
mod lexicon;
mod library;
mod names;
mod operator;
mod profiles;
pub mod rbac;
mod reads;
mod reconciler;
mod schemas;
mod status;
mod tree;
mod types;
mod typing;
mod walk;

pub use api_types::lacks_api_types;
pub use coerce::Misfit;
pub use compile::{compile, errors_in_templates, types};
pub use diff::{Change, diff};
pub use keys::{ChildKey, GroupKind, KatalogRef, ObjectKey, ResourceType};
pub use kinds::built_in;
pub(crate) use lexicon::Lexicon;
pub use library::{Library, Origin, Part, Reference, beside};
pub use operator::check_motif;
pub(crate) use profiles::resolve_profile;
pub use profiles::{built_in_profiles, profiles_markdown};
pub use schemas::{CrdShape, CrdVersion, NotACrd, Schemas, StatusType};
pub(crate) use tree::Fields;
pub use types::*;
pub use typing::Typed;
