//! Compiles a Katalog into immutable plans with parsed templates and expanded shorthand.
//!
//! ```text
//!  KatalogSpec ── compile ──► Plan { operators: [Arc<OperatorPlan>] }   or Diagnostics, never both
//!      Schemas ──►│            │
//!      Library ──►│            ├── rbac:  the rules that the plan needs
//!                              └── diff:  the changes for a running operator
//! ```
//!
//! `Library` holds the Motifs and included files that `imports` and `profiles` resolve; `typing` and `reads` analyze the
//! types and the reads of templates.
//!
//! A plan contains no name of a custom resource: it is compiled once and serves every instance.

mod api_types;
mod autoscale;
mod calls;
mod capacity;
mod chance;
mod checks;
mod children;
mod coerce;
mod compile;
pub(crate) mod conditions;
pub mod cross;
mod defaults;
pub mod describe;
mod diff;
mod ending;
mod enrich;
pub(crate) mod for_each;
mod gate;
mod held;
mod imports;
mod in_force;
pub(crate) mod kinds;
mod lasting;
mod lexicon;
mod library;
mod lifecycle;
mod names;
pub mod observe;
mod operator;
mod places;
mod profiles;
pub mod rbac;
mod reads;
mod reconciler;
mod references;
mod rules;
mod scale;
mod schemas;
mod secrecy;
mod setup;
mod status;
mod targets;
mod tree;
mod types;
mod typing;
mod walk;
mod watched;
mod wiring;

pub use crate::api::keys::{ChildKey, Declaring, GroupKind, KatalogRef, ObjectKey, ResourceType};
pub use api_types::{kind_named, lacks_api_types, only_from_files};
pub use autoscale::Metric;
pub use calls::{CallPlan, Piece, Retry, Stage, Token};
pub use coerce::Misfit;
pub use compile::{compile, errors_in_templates, types};
pub use diff::{Change, diff};
pub use ending::{EndPlan, EndStep};
pub use enrich::EnrichPlan;
pub(crate) use enrich::is_read;
pub use gate::*;
pub use held::{HoldPlan, RequeuePlan};
pub use in_force::{Plans, Revised};
pub(crate) use kinds::guess_plural;
pub use kinds::{Wave, built_in, named};
pub use lasting::{Allowed, CertificatePlan, CopyPlan, LastingPlan};
pub(crate) use lexicon::Lexicon;
pub use library::{Library, Origin, Part, Reference, beside, is_of_registry};
pub use observe::ObservePlan;
pub use operator::check_motif;
pub use places::Places;
pub(crate) use profiles::{Resolved, resolve_profile};
pub use profiles::{built_in_profiles, profiles_markdown};
pub(crate) use reads::{CHANGES, EVENTS, EXTERNAL};
pub(crate) use rules::target_of;
pub use rules::{Completion, Demand, Normalized, RulesPlan, Target};
pub use scale::{ScalePlan, ScaleStep};
pub use schemas::{CrdShape, CrdVersion, FieldType, NotACrd, Schemas};
pub(crate) use status::{is_reason, read_status};
pub use targets::{LabelRequirement, LabelSelector, Reach, TargetsPlan};
pub(crate) use tree::Fields;
pub use types::*;
pub use typing::Typed;
pub(crate) use typing::explain_amount;
pub use watched::{MetadataKey, SYSTEM_NAMESPACES, Watched};
