//! The pure pass over one custom resource: observed in, decisions out.
//!
//! ```text
//!  watch events ── record ──► CrRecord, ChildRecord          (the stored part of an object)
//!                                   │ Observed
//!                                   ▼
//!                       step ──► Cycle: an intent per child  (the wanted state)
//!                                   │ executor, outside: `differ` decides which intents need a write
//!                                   ▼
//!                                Executed                    (the completed writes)
//!                                   │
//!                       status ──► StatusPatch, when it differs
//! ```
//!
//! The code does not await, lock or read a clock.

pub mod autoscale;
pub mod behind;
pub mod calls;
pub mod child_metadata;
mod children;
mod cleanup;
mod collect;
pub mod crd;
pub mod crd_status;
mod cycle;
mod data_source;
pub mod deletion;
pub mod differ;
pub mod emit;
mod expand;
pub mod external;
mod failure;
pub mod field_holders;
pub mod forecast;
mod gate;
pub mod gate_effects;
mod hold;
pub mod hold_reason;
pub mod hooks;
pub mod immutable;
mod informed;
mod inputs;
pub mod inventory;
mod join;
pub mod kstatus;
pub mod labels;
mod metadata;
pub mod observe;
pub mod owned;
pub mod patch;
mod prepare;
pub mod prepared;
pub mod preview;
pub mod reason;
pub mod record;
mod refused;
pub mod related;
pub mod render;
pub mod requested;
pub mod review;
pub mod scale;
pub mod scaler;
pub mod simulate;
pub mod sources;
pub mod standing;
pub mod status;
pub mod step;
pub mod suspension;
pub mod takeover;
pub mod template_data;
pub mod unique;
pub mod verdict;
mod view;
pub mod volumes;
pub mod waiting_for;
pub mod why;

pub use data_source::enrich;
pub(crate) use orkestra_object::identity;
