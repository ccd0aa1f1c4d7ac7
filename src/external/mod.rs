//! HTTP calls that Katalogs ask for, and what keeps them from places where they have no business.
//!
//! ```text
//!  Request ── Target::parse ──► Guard: may the host be called? ──► resolve once ──► Guard: every address? ──► dial one of them
//!     ▲                                                                                                        │
//!     └──────────────────────── a redirect is judged as a call of its own, at most five ◄───────────────── HTTP/1.1
//!                                                                                                              │
//!                                                             Answer: status, at most 256 KiB of text, or why not
//! ```
//!
//! Guarantees: without an entry of `--external-allow` nothing is called, no name is looked up. What is dialled is an
//! address that was judged, never a name. Neither proxies nor credentials of the environment, of the machine or of the
//! service account are used. A call ends within its timeout whatever the other side does, and holds 256 KiB at most.
//! Errors name the scheme, host and port of a call, and never its path, its headers or a body.

mod address;
mod allow;
mod client;
mod dial;
mod error;
mod exchange;
mod guard;
mod places;
mod target;
#[cfg(test)]
mod tests;
mod variables;

pub(crate) use address::kind as kind_of_address;
pub use allow::{Allow, NotAnEntry};
pub use client::Client;
pub use dial::Resolver;
pub use error::CallError;
pub use guard::{Guard, Refusal};
pub use target::{BadUrl, Target};
pub use variables::Variables;
