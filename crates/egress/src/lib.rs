//! Outbound connections: those of external calls, sources and registries.
//!
//! ```text
//!  Request ──► Guard: is the host permitted? ──► resolve once ──► Guard: every address? ──► connect to one of them ──► TLS ──► HTTP/1.1
//!     ▲                                                                                                                     │
//!     └───────────────────── a redirect is checked like a request of its own, at most five ◄────────────────────────── Response
//! ```
//!
//! Guarantees: a connection is made to an address that was checked, never to a name; an address in a URL is checked like that of a
//! name. Redirects follow one set of rules ([`Request::redirected`]). Heads, bodies and durations are limited, and a body is read as
//! it arrives. Proxies and credentials of the environment, the machine or the service account are not used. Errors contain the scheme,
//! host and port of a target, never its path, headers or body.

mod address;
mod allow;
mod client;
mod connector;
mod dial;
mod error;
mod guard;
mod refusal;
mod request;
mod response;
mod target;
mod variables;

pub use allow::{Allow, NotAnEntry};
pub use client::Client;
pub use dial::Resolver;
pub use error::Error;
pub use guard::Guard;
pub use refusal::Refusal;
pub use request::{Leader, MOST_REDIRECTS, RedirectError, Redirects, Request};
pub use response::{Limits, Response};
pub use target::{BadUrl, Host, Target};
pub use variables::{Unavailable, Variables};
