//! OCI registries: references, a client with limits on everything, artifacts of Katalogs and Motifs, and their signatures.
//!
//! ```text
//!  Reference ──► Client ── fetch, stream_blob ──► Manifest, layers ── artifact ──► files, Summary
//!                  │                                  │
//!                  └── referrers, `.sig` tag ─────────┴── signature ──► Verdict     no I/O
//! ```
//!
//! Guarantees: every response is limited in bytes and in time, regardless of the server. Content with a digest is checked
//! against it before use. Credentials are sent only to their registry and to the token server that it names itself: the challenge of
//! a server to which it redirects is not answered. Connections are made by `orkestra-egress`; the registries of a user lead to public
//! addresses and to the kinds of addresses that they have themselves, such as one private network.

pub mod artifact;
mod auth;
pub mod catalogue;
mod client;
mod content;
mod digest;
mod error;
mod manifest;
mod reference;
mod referrers;
pub mod signature;
mod transport;

pub use auth::{Credential, CredentialStore, Keychain};
pub use client::{Client, Options};
pub use content::{ManifestState, PushedManifest, empty_config};
pub use digest::{Digest, NotADigest};
pub use error::Error;
pub use manifest::{
    Content, Descriptor, Fetched, Index, MOST_LAYERS, MOST_LISTED, MOST_MANIFEST, Manifest, media,
    parse,
};
pub use orkestra_egress::Limits;
pub use reference::{BadReference, LATEST, Reference, Repository};
