//! Fetches the sources of Komposers: files, artifacts of OCI registries, Git repositories and Helm charts.
//!
//! ```text
//!  Source, Credential ──► Fetcher ── guard ──► http, registry, git, helm ── policy ──► Artifact { url, revision, digest, documents }
//!                            │                                                             │
//!                            └──── cached: digest, ETag, commit, version ◄─────────────────┘
//! ```
//!
//! Guarantees: a host is called only if the [guard](orkestra_egress::Guard) permits it, and each address is checked before a
//! connection, also after redirects. Every fetch is limited in bytes, files, depth and time. Nothing is written to disk and no
//! program is run, except a credential helper of Docker's configuration if the caller provides the configuration of a user. Content
//! with a digest is checked against it. A source whose required signature is not valid results in an error. Credentials are sent
//! only to the origin that the source names, or to its token server. An unchanged source costs one small request, or none if it is
//! pinned.

mod artifact;
mod credential;
mod error;
mod fetcher;
mod git;
mod helm;
mod http;
mod limits;
mod place;
mod policy;
mod registry;
mod request;
mod source;

pub use artifact::{Artifact, Fetched, Verified};
pub use credential::{Credential, Scheme};
pub use error::Error;
pub use fetcher::{Fetcher, Options};
pub use limits::Limits;
pub use policy::{BadPolicy, Policy, SignatureRequirement};
pub use request::{NoSecrets, Secret, Secrets};
pub use source::{Document, Pin, Source, ValuesFile};
