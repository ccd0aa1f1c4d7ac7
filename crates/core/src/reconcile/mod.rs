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
//! Nothing here awaits, locks or reads a clock.

pub mod autoscale;
pub mod calls;
pub mod child_metadata;
mod children;
pub mod cleanup;
pub mod crd;
pub mod crd_status;
pub mod cross;
mod data_source;
pub mod deletion;
pub mod differ;
pub mod emit;
mod enrich;
mod events;
mod expand;
pub mod field_holders;
pub mod gate;
pub mod hold_reason;
mod identity;
mod inputs;
mod intern;
mod introspection;
pub mod inventory;
pub mod kstatus;
pub mod labels;
pub mod observe;
mod observed;
pub mod owned;
mod patch;
pub mod prepare;
pub mod preview;
pub mod proof;
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
pub mod status;
pub mod step;
pub mod unique;
mod unread;
pub mod verdict;
pub mod waiting_for;
mod watched;
