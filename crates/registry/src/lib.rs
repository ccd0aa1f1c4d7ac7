//! OCI registries: references, a client with limits on everything, artifacts of Katalogs and Motifs, and their signatures.
//!
//! ```text
//!  Reference ──► Client ── fetch, stream_blob ──► Manifest, layers ── artifact ──► files, Summary
//!                  │                                  │
//!                  └── referrers, `.sig` tag ─────────┴── signature ──► Verdict     no I/O
//! ```
//!
//! Guarantees: every response is limited in bytes and in time, regardless of the server. Content with a digest is checked
//! against it before use. Credentials are sent only to their registry and to the token server that it names. A registry
//! cannot redirect to a kind of address that it does not have itself: a registry on the internet cannot redirect to a private
//! network, and no registry can redirect to link-local addresses.

pub mod artifact;
mod auth;
pub mod catalogue;
mod client;
mod content;
mod dial;
mod digest;
mod error;
mod location;
mod manifest;
mod reference;
mod referrers;
mod resolve;
pub mod signature;
mod transport;

pub use auth::{Credential, CredentialStore, Keychain};
pub use client::{Client, Options};
pub use content::{ManifestState, PushedManifest, empty_config};
pub use dial::{Dial, DialError, Dialler};
pub use digest::{Digest, NotADigest};
pub use error::Error;
pub use manifest::{
    Content, Descriptor, Fetched, Index, MOST_LAYERS, MOST_LISTED, MOST_MANIFEST, Manifest, media,
    parse,
};
pub use reference::{
    BadReference, DEFAULT_KATALOGS, DEFAULT_MOTIFS, LATEST, Reference, Repository,
};
pub use resolve::ReservedRange;
pub use transport::Limits;
