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
