//! The API server, as Orkestra uses it.
//!
//! ```text
//!  watch (informers: lists and watches, read from their bytes into records)
//!    │
//!  wire (one request: its deadline, its errors) ──► reach (one breaker for the process)
//!    │
//!  gate (no writes without the lease) ──► client ──► flow (fair shares) ──► connections (HTTP/2)
//! ```

pub mod client;
pub mod gate;
pub mod reach;
pub mod watch;
pub mod wire;
