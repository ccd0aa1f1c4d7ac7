//! Keyless signatures, by a short-lived certificate of an identity. Verification is offline: the only trust anchors are those in a
//! trusted root that the caller provides.
//!
//! ```text
//!  Evidence ──► log    an entry of a trusted transparency log; the log signed the time of the signature
//!           ──► chain  the certificate is for code signing; an authority of the root issued it; it was valid at that time
//!           ──► identity  the certificate names the expected issuer and subject
//!           ──► the certificate's key signed the message, and the entry contains this signature, certificate and payload
//! ```
//!
//! Source: sigstore/protobuf-specs, `sigstore_trustroot.proto` and `sigstore_bundle.proto`; sigstore/fulcio, `docs/oid-info.md`.

mod chain;
mod evidence;
mod identity;
mod log;
mod proof;
mod root;

#[cfg(test)]
mod tests;

use rustls::pki_types::{CertificateDer, UnixTime};
use webpki::{EndEntityCert, ring as algorithms};

pub use evidence::Annotations;
pub(crate) use evidence::{Evidence, Material};
pub use root::{BadRoot, TrustedRoot};

/// The algorithms of certificates and logs.
static ALGORITHMS: &[&dyn rustls::pki_types::SignatureVerificationAlgorithm] =
    webpki::ALL_VERIFICATION_ALGS;

/// An identity whose signatures are accepted.
#[derive(Clone, PartialEq, Eq)]
pub struct Identity {
    /// The issuer: exactly this text.
    issuer: String,
    /// The subject, with wildcards.
    subject: String,
    /// The certificates and keys that are trusted.
    root: TrustedRoot,
}

impl Identity {
    /// Accepts signatures by certificates that have this issuer, and a subject (an e-mail address or URI) that matches
    /// `subject`, in which `*` stands for any text without a separator (`@`, `//`) that `subject` has itself.
    ///
    /// # Errors
    /// [`BadRoot`] if the issuer or the subject is empty.
    pub fn new(issuer: &str, subject: &str, root: TrustedRoot) -> Result<Self, BadRoot> {
        for (name, value) in [("issuer", issuer), ("subject", subject)] {
            if value.is_empty() {
                return Err(BadRoot(format!("the {name} of the identity is empty")));
            }
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            subject: subject.to_owned(),
            root,
        })
    }

    /// Returns the name of the requirement in messages: subject, issuer and trusted root.
    pub fn mark(&self) -> String {
        let Self {
            issuer,
            subject,
            root,
        } = self;
        format!("{subject} of {issuer} by {}", root.fingerprint())
    }

    /// Checks that a certificate of this identity signed; returns the subject of the certificate.
    pub(crate) fn check(
        &self,
        evidence: &Evidence,
        signed: &SignedMessage<'_>,
        now: UnixTime,
    ) -> Result<String, String> {
        let entry = log::entry(evidence, &self.root)?;
        let time = match &entry {
            Some(entry) => entry.unix_time()?,
            None => now,
        };
        let leaf = CertificateDer::from(&evidence.leaf[..]);
        chain::check(&leaf, evidence, &self.root, time)?;
        let subject = identity::check(&evidence.leaf, &self.issuer, &self.subject)?;
        if !signed.is_by(&leaf) {
            return Err("the key of its certificate did not sign it".to_owned());
        }
        if let Some(entry) = entry {
            log::is_about(entry, signed, &evidence.leaf)?;
        }
        Ok(subject)
    }
}

/// The subject, the issuer and the digest of the root.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Identity({})", self.mark())
    }
}

/// The kind of log entry that a format of signatures has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    /// A digest with a signature, of a "simple signing" document.
    HashedRekord,
    /// An envelope, of a bundle.
    Dsse,
}

/// A message with its signature.
pub(crate) struct SignedMessage<'a> {
    /// The bytes that were signed.
    pub(crate) message: &'a [u8],
    /// The signature.
    pub(crate) signature: &'a [u8],
    /// The payload that a log entry names.
    pub(crate) payload: &'a [u8],
    /// The kind of that entry.
    pub(crate) kind: EntryKind,
}

impl SignedMessage<'_> {
    /// True if the key of a certificate signed it.
    fn is_by(&self, leaf: &CertificateDer<'_>) -> bool {
        let Ok(leaf) = EndEntityCert::try_from(leaf) else {
            return false;
        };
        [
            algorithms::ECDSA_P256_SHA256,
            algorithms::ECDSA_P384_SHA384,
            algorithms::ECDSA_P384_SHA256,
            algorithms::ED25519,
            algorithms::RSA_PKCS1_2048_8192_SHA256,
        ]
        .into_iter()
        .any(|algorithm| {
            leaf.verify_signature(algorithm, self.message, self.signature)
                .is_ok()
        })
    }
}

/// Returns a text of a hostile document for a message: short, on one line.
fn shown(text: &str) -> String {
    let clean = text.chars().take(200).map(|character| {
        if character.is_control() {
            ' '
        } else {
            character
        }
    });
    clean.collect()
}
