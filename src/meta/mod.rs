//! The meta-controller: Katalogs in, running operators out.
//!
//! ```text
//!  Katalog CRs ──┐
//!                ├─ parse, compile ─► revision stored ─► supervisor: claims, diff ─► start / reconfigure / stop
//!  files ────────┘        │                                   │
//!                         └─ diagnostics ──► Katalog status ◄─┴─ each operator's status
//! ```
//!
//! Nothing here knows what an operator does; [`crate::runtime`] knows nothing of Katalogs.

mod directory;

pub use directory::{About, Directory, KatalogView, OperatorView, Publisher, Readiness};

mod calls;
mod claims;
mod ledger;
mod reasons;
mod release;
mod revisions;
mod status;
mod supervisor;

pub use calls::CallError;
pub use claims::Seniority;
pub use release::{ReleaseError, Released, release_kind};
