//! Signatures of artifacts in the formats of cosign: with a key pair (ECDSA P-256 over SHA-256), or by the certificate of an
//! identity (keyless).
//!
//! ```text
//!  Client::signatures ──► Candidate ── verify (no I/O) ──► Verified, or Refused with a reason for each
//!                          │
//!                          ├── Bundle   a DSSE envelope around an in-toto statement; written by cosign 3
//!                          └── Simple   a signed "simple signing" document; written by older versions
//! ```
//!
//! A signature is valid for a digest only, never for a tag or a name. Anything that cannot be read, or has another type or
//! another digest, does not count as a signature.

mod bundle;
mod key;
mod keyless;
mod pem;
mod publish;
mod signer;
mod simple;
mod verify;

pub use bundle::{ARTIFACT_TYPE as BUNDLE, sign as sign_bundle};
pub use key::{KeyError, PrivateKey, PublicKey};
pub use keyless::{Annotations, BadRoot, Identity, TrustedRoot};
pub use publish::FoundSignatures;
pub use signer::Signer;
pub use simple::{PAYLOAD as SIMPLE, SIGNATURE, sign as sign_simple};
pub use verify::{Candidate, Format, Refused, Verified, verify, verify_by};
