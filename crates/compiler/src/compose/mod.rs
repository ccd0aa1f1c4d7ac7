//! Composition: Komposers, and Katalogs with `sources`, merged with the documents of their sources.
//!
//! ```text
//!  Komposer ── Composition ── merge ──► Need(requests) ── the caller fetches ──► Artifacts ── merge again
//!                                └────► Done(ResolvedComposition) ──► KatalogSpec with its scopes ── compile::katalog
//! ```
//!
//! Nothing here does I/O. A [`SourceRequest`] is what must be fetched; an [`Artifact`] is what was fetched. A composition inside
//! of a composition (`useKomposer`) asks for further artifacts: the caller answers and merges again, until nothing is missing.

mod artifact;
mod assemble;
mod authority;
mod blocks;
pub mod claims;
mod composition;
mod declared;
mod includes;
mod lock;
mod locks;
mod merge;
mod print;
mod request;
mod resolved;
mod security;
mod setup;
mod stored;
#[cfg(test)]
mod tests;

pub use artifact::{Artifact, Artifacts, Fetched, SourceRecord, Verified};
pub(crate) use authority::refused_address;
pub use composition::Composition;
pub use declared::Declared;
pub(crate) use includes::definition;
pub use lock::{BadLock, LOCK_FILE, Lock, Locked, digest_of, is_pinned};
pub use merge::{Merged, merge};
pub use orkestra_language::api::oci::{BadReference, OciReference, is_digest};
pub use request::{Base, DeclarationSite, RequestKind, SourceRequest};
pub use resolved::ResolvedComposition;
