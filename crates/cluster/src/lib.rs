//! Access to the API server.
//!
//! ```text
//!  watch (informers: lists and watches, decoded from bytes into records)
//!    │
//!  requests (one request: its deadline, its errors) ──► reach (circuit breaker of the process)
//!    │
//!  leader_election (who may write) ──► gate
//!  gate (no writes without the Lease) ──► client ──► flow (fair shares) ──► connections (HTTP/2)
//! ```

pub mod client;
pub mod gate;
pub mod leader_election;
pub mod reach;
pub mod requests;
pub mod watch;
