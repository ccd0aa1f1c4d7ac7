//! The pure half of an operator: functions of a plan, of objects and of the time.
//!
//! ```text
//!  plan, records of a custom resource and its children ── reconcile ──► Cycle: the wanted state of a custom resource
//!  plan, a review ── admission ──► a verdict; policies of the API server
//!  plan, an object ── conversion ──► the object in another version
//! ```
//!
//! The crate does no I/O, reads no clock and has no dependency on a Kubernetes client.

pub mod admission;
pub mod conversion;
pub mod reconcile;
