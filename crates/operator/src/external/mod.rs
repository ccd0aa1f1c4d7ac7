//! HTTP calls of Katalogs, and the checks that restrict their targets.
//!
//! ```text
//!  Request ── Target::parse ──► Guard: is the host permitted? ──► resolve once ──► Guard: every address? ──► connect to one of them
//!     ▲                                                                                                        │
//!     └──────────────────────── a redirect is checked like a new call, at most five ◄────────────────────── HTTP/1.1
//!                                                                                                              │
//!                                                             Answer: status, at most 256 KiB of text, or an error
//! ```
//!
//! Guarantees: without an entry of `--external-allow` no call is made and no name is resolved. A connection is made to an address
//! that was checked, never to a name. Proxies and credentials of the environment, the machine or the service account are not
//! used. A call ends within its timeout whatever the server does, and holds at most 256 KiB. Errors contain the scheme, host and
//! port of a call, never its path, headers or body.

mod client;
mod error;
mod slots;
#[cfg(test)]
mod tests;
mod variables;

pub use client::Client;
pub use error::CallError;
pub use orkestra_egress::{Allow, BadUrl, Guard, Resolver, Variables};
