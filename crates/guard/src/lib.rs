//! Outbound connections: the checks that restrict their targets, and an HTTP exchange with limits.
//!
//! ```text
//!  URL ── Target::parse ──► Guard: is the host permitted? ──► resolve once ──► Guard: every address? ──► connect to one of them ──► exchange
//! ```
//!
//! Guarantees: a connection is made to an address that was checked, never to a name. Proxies and credentials of the environment,
//! the machine or the service account are not used. Errors contain the scheme, host and port of a target, never its path, headers
//! or body.

mod address;
mod allow;
mod dial;
mod error;
mod exchange;
#[allow(
    clippy::module_inception,
    reason = "the guard is the crate's main part, and the crate is named for it"
)]
mod guard;
mod refusal;
mod target;
mod variables;

pub use address::kind as kind_of_address;
pub use allow::{Allow, NotAnEntry};
pub use dial::{Dialler, Resolver, Stream};
pub use error::Error;
pub use exchange::{Bounds, Message, Received, exchange};
pub use guard::Guard;
pub use refusal::Refusal;
pub use target::{BadUrl, Host, Target};
pub use variables::{Unavailable, Variables};
