//! Plans: the immutable, compiled form of a Katalog, and functions that depend only on a plan.
//!
//! ```text
//!  compile ──► Plan { operators: [Arc<OperatorPlan>] }
//!                 ├── walk:     every expression, with its purpose
//!                 ├── describe: the plan as a tree, for its hash
//!                 ├── rbac:     the rules that the plan needs
//!                 └── diff:     the changes for a running operator
//! ```
//!
//! A plan contains no name of a custom resource: it is compiled once and used for every custom resource.

pub mod admission;
mod autoscale;
mod calls;
pub mod cel;
mod child;
mod coerce;
mod containers;
pub mod conversion;
pub mod cross;
pub mod definitions;
pub mod describe;
mod diff;
mod emit;
mod enrich;
pub mod for_each;
pub mod gate;
mod generated_secret;
mod held;
mod hooks;
mod in_force;
pub mod inputs;
pub mod introspection;
pub mod kinds;
pub mod list_keys;
mod names;
mod namespaces;
pub mod observe;
mod on_delete;
mod operator;
pub mod patch;
mod place;
pub mod pods;
pub mod policy;
pub mod rbac;
mod reads;
pub mod references;
pub mod roots;
pub mod rules;
mod scale;
mod status;
mod targets;
mod tree;
pub mod walk;
mod watched;
mod whole;

pub use admission::{
    AdmissionPlan, DeletionPlan, Moment, Moments, NamespacePlan, Protection, SecurityPlan,
};
pub use autoscale::{AutoscalePlan, CapacityPlan, Metric};
pub use calls::{CallPlan, Piece, Retry, Stage, TokenPlan};
pub use cel::{CelRule, OnScale};
pub use child::{BlockPlan, ChildPlan, Mode, OnFalsePlan};
pub use coerce::{Coerce, TypeMismatch};
pub use containers::{container_name, tagged_image};
pub use conversion::{ConversionPlan, ConversionStep, DeclaredConversion};
pub use diff::{PlanChange, diff};
pub use emit::is_event_reason;
pub use emit::{CleanupPlan, EmitPlan};
pub use enrich::EnrichPlan;
pub use enrich::is_read;
pub use for_each::ForEachPlan;
pub use gate::*;
pub use generated_secret::{Allowed, CertificatePlan, CopyPlan, GeneratedSecretPlan};
pub use held::{HoldPlan, RequeuePlan};
pub use hooks::{
    EntriesCompiler, HOOK, HOOK_CHILDREN, HookEndpoint, HookPlan, HookProtocol, HookStage,
    ManagedKind,
};
pub use in_force::{Plans, Revised};
pub use inputs::{ImportPlan, InputPlan};
pub use kinds::{WriteWave, built_in, guess_plural, named};
pub use list_keys::{DuplicateItems, ListKeys};
pub use names::NameRule;
pub use namespaces::ObjectNamespaces;
pub use observe::ObservePlan;
pub use on_delete::{OnDeletePlan, OnDeleteStep};
pub use operator::{
    BackoffPlan, DefinitionPlan, DependencyPlan, OperatorPlan, PagesPlan, Plan, QueuePlan, Stopped,
};
pub use orkestra_language::api::keys::{
    ChildKey, Declaring, GroupKind, KatalogRef, ObjectKey, ResourceType,
};
pub use place::PlaceRef;
pub use place::PlanPlace;
pub use reads::{ChildAlias, NameForm, Reads};
pub use roots::{CHANGES, EXTERNAL, OLD, OPERATION};
pub use rules::target_of;
pub use rules::{Completion, CompletionTarget, Normalized, RulesPlan, ValidationRulePlan};
pub use scale::{REPLICAS, ScalePlan, ScaleStep};
pub use status::{OwnCondition, StatusFieldPlan, StatusPlan};
pub use status::{is_reason, read_status};
pub use targets::{ChildTargets, LabelRequirementPlan, LabelSelector, Reach, TargetsPlan};
pub use tree::{Chosen, Leaf, ObjectTree, OwnerPart};
pub use watched::{MetadataKey, SYSTEM_NAMESPACES, Watched};
pub use whole::Whole;
