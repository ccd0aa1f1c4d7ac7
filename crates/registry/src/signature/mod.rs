//! Signatures of artifacts, as cosign writes them with a key pair: ECDSA P-256 over SHA-256.
//!
//! ```text
//!  Client::signatures ──► Candidate ── verify (pure) ──► Verified, or Refused with a reason for each
//!                          │
//!                          ├── Bundle   a DSSE envelope around an in-toto statement; what cosign 3 writes
//!                          └── Simple   a signed "simple signing" document; what older versions write
//! ```
//!
//! A signature holds for a digest and for nothing else: neither for a tag nor for a name. Whatever cannot be read, has another type or
//! another digest counts as no signature.

mod bundle;
mod key;
mod pem;
mod publish;
mod simple;
mod verify;

pub use bundle::{ARTIFACT_TYPE as BUNDLE, sign as sign_bundle};
pub use key::{KeyError, PrivateKey, PublicKey};
pub use publish::Found;
pub use simple::{PAYLOAD as SIMPLE, SIGNATURE, sign as sign_simple};
pub use verify::{Candidate, Format, Refused, Verified, verify};
