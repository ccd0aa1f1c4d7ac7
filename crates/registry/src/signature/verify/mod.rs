//! Verifies signatures, without I/O. A signature is rejected unless every check succeeds.

use std::{fmt::Write as _, time::Duration};

use bytes::Bytes;
use rustls::pki_types::UnixTime;

use super::{Annotations, PublicKey, Signer, bundle, simple};
use crate::Digest;

/// The format of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// A Sigstore bundle.
    Bundle,
    /// A "simple signing" document.
    Simple,
}

impl Format {
    /// Both formats, the current one first.
    pub const ALL: [Self; 2] = [Self::Bundle, Self::Simple];

    /// Returns its name in flags and output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bundle => "bundle",
            Self::Simple => "simple",
        }
    }
}

/// A signature of an artifact in a registry, not yet verified.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// A Sigstore bundle.
    Bundle(Bytes),
    /// A "simple signing" document.
    Simple {
        /// The document.
        payload: Bytes,
        /// The signature, in base64.
        signature: String,
        /// Its certificate, if it was not signed with a key pair.
        annotations: Annotations,
    },
    /// A signature that could not be read.
    Unreadable {
        /// The declared format.
        format: Format,
        /// The reason.
        why: String,
    },
}

impl Candidate {
    /// Returns the format.
    pub fn format(&self) -> Format {
        match self {
            Self::Bundle(_) => Format::Bundle,
            Self::Simple { .. } => Format::Simple,
            Self::Unreadable { format, .. } => *format,
        }
    }
}

/// A valid signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// The signed digest.
    pub digest: Digest,
    /// The index of the key or identity among those given, from 0.
    pub signer: usize,
    /// The subject of the certificate, if an identity signed.
    pub subject: Option<String>,
    /// The format.
    pub format: Format,
}

/// There is no valid signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
pub struct Refused {
    /// The digest that must be signed.
    pub digest: Digest,
    /// The accepted formats.
    pub accepted: Vec<Format>,
    /// Each signature that was read, with the reason why it is not valid.
    pub reasons: Vec<(Format, String)>,
}

impl Refused {
    fn message(&self) -> String {
        let formats: Vec<&str> = self.accepted.iter().map(|format| format.name()).collect();
        if self.reasons.is_empty() {
            return format!(
                "{} has no signature (looked for: {})",
                self.digest,
                formats.join(", ")
            );
        }
        let mut text = format!("no signature of {} is valid", self.digest);
        for (at, (format, why)) in self.reasons.iter().enumerate() {
            let joint = if at == 0 { ": " } else { "; " };
            // Writing to a String cannot fail.
            let _ = write!(text, "{joint}{} {}: {why}", format.name(), at + 1);
        }
        text
    }
}

impl Signer {
    /// Checks a candidate; returns the subject of the certificate if there is one.
    fn check(
        &self,
        digest: &Digest,
        candidate: &Candidate,
        now: UnixTime,
    ) -> Result<Option<String>, String> {
        match candidate {
            Candidate::Bundle(bytes) => bundle::check(digest, bytes, self, now),
            Candidate::Simple {
                payload,
                signature,
                annotations,
            } => simple::check(digest, payload, (signature, annotations), self, now),
            Candidate::Unreadable { why, .. } => Err(why.clone()),
        }
    }
}

/// Finds a signature by one of `keys` for `digest`, in one of the accepted formats.
///
/// # Errors
/// [`Refused`] with the reason of every candidate. Without keys or without accepted formats, no signature is valid.
pub fn verify(
    digest: &Digest,
    candidates: &[Candidate],
    keys: &[PublicKey],
    accepted: &[Format],
) -> Result<Verified, Refused> {
    let signers: Vec<Signer> = keys.iter().cloned().map(Signer::Key).collect();
    // Keys do not expire.
    verify_by(
        digest,
        candidates,
        &signers,
        accepted,
        jiff::Timestamp::UNIX_EPOCH,
    )
}

/// Finds a signature by one of `signers` for `digest`, in one of the accepted formats.
///
/// `now` is the time at which certificates have to be valid if the trusted root of an identity has no transparency log.
///
/// # Errors
/// [`Refused`] with the reason of every candidate. Without signers or without accepted formats, no signature is valid.
pub fn verify_by(
    digest: &Digest,
    candidates: &[Candidate],
    signers: &[Signer],
    accepted: &[Format],
    now: jiff::Timestamp,
) -> Result<Verified, Refused> {
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let mut reasons = Vec::new();
    for candidate in candidates {
        let format = candidate.format();
        if !accepted.contains(&format) {
            reasons.push((format, "this format is not accepted".to_owned()));
            continue;
        }
        let mut why: Vec<String> = Vec::new();
        for (number, signer) in signers.iter().enumerate() {
            match signer.check(digest, candidate, now) {
                Ok(subject) => {
                    return Ok(Verified {
                        digest: *digest,
                        signer: number,
                        subject,
                        format,
                    });
                }
                Err(reason) if why.contains(&reason) => {}
                Err(reason) => why.push(reason),
            }
        }
        if why.is_empty() {
            why.push("no key is given".to_owned());
        }
        reasons.push((format, why.join(", ")));
    }
    Err(Refused {
        digest: *digest,
        accepted: accepted.to_vec(),
        reasons,
    })
}

#[cfg(test)]
mod tests;
