//! Compiles a Katalog into an immutable plan with parsed templates and expanded shorthand.
//!
//! ```text
//!  KatalogSpec ── katalog ──► Plan { operators: [Arc<OperatorPlan>] }   or Diagnostics, never both
//!      Schemas ──►│
//!      Library ──►│  operator: one entry of `spec.crds`
//!                 │    imports, symbols    names that its templates can use
//!                 │    children            entries to whole objects, by `resources`
//!                 │    rules, observe, …   one module for each field of an entry
//!                 │    reads, typing       the paths that templates read, and their types
//!                 └─   checks, wiring, …   conflicts and unresolved references between children
//! ```
//!
//! The modules have the names of those in `plan`: `plan::cross` holds the types, `compile::cross` creates their values, with a
//! function `plan`, or `plans` for a list. The code is not needed once a plan exists.

mod admission;
mod api_types;
mod autoscale;
mod calls;
mod capacity;
mod cel;
mod checks;
mod children;
pub mod conditions;
mod conversion;
mod cross;
mod emit;
mod enrich;
mod entry_schema;
mod for_each;
mod held;
mod hooks;
mod imports;
mod katalog;
mod known_schemas;
mod lifecycle;
mod observe;
mod on_delete;
mod operator;
mod profiles;
mod randomness;
mod reads;
mod reconciler;
mod rules;
mod scale;
mod secret_taint;
mod setup;
mod status;
mod symbols;
mod targets;
mod typing;
mod watched;
mod wiring;

pub use api_types::{lacks_api_types, only_from_files, without_status_subresource};
pub use conversion::recorded as recorded_conversion;
pub use katalog::{errors_in_templates, katalog, types};
pub use operator::check_motif;
pub use typing::Typed;
