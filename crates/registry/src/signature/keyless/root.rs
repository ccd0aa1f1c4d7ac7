//! Trusted roots: certificates in PEM, or `trusted_root.json` of Sigstore.

use rustls::pki_types::{SubjectPublicKeyInfoDer, UnixTime};
use serde::Deserialize;
use webpki::RawPublicKeyEntity;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::{
    ALGORITHMS,
    evidence::{certificates, decode},
};
use crate::Digest;

/// The longest trusted root, in bytes.
const MOST_BYTES: usize = 256 << 10;
/// The most authorities and the most logs of a root.
const MOST_OF_EACH: usize = 64;
/// The start of the media types of `trusted_root.json`.
const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.trustedroot";

/// A trusted root, or an identity, that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadRoot(pub(crate) String);

/// The certificate authorities and the transparency logs that keyless signatures are verified with.
///
/// A root without transparency logs is that of a private authority without one: its signatures need no log entry, and their
/// certificates have to be valid when they are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedRoot {
    pub(crate) authorities: Vec<Authority>,
    pub(crate) logs: Vec<Log>,
    digest: Digest,
}

/// A certificate authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Authority {
    /// Certificates that are trusted.
    pub(crate) anchors: Vec<Vec<u8>>,
    /// Certificates between those and the signer's.
    pub(crate) intermediates: Vec<Vec<u8>>,
    /// When it issues certificates.
    pub(crate) valid: Period,
}

/// A period of time, of which each end may be open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Period {
    start: Option<jiff::Timestamp>,
    end: Option<jiff::Timestamp>,
}

impl Period {
    /// True if a time is in it.
    pub(crate) fn contains(self, time: UnixTime) -> bool {
        let Ok(seconds) = i64::try_from(time.as_secs()) else {
            return false;
        };
        let is_after_start = self.start.is_none_or(|start| start.as_second() <= seconds);
        is_after_start && self.end.is_none_or(|end| seconds <= end.as_second())
    }
}

/// A trusted transparency log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Log {
    pub(crate) id: Vec<u8>,
    key: Vec<u8>,
    pub(crate) valid: Period,
}

impl Log {
    /// Returns a log with its key (`SubjectPublicKeyInfo` in DER).
    pub(crate) fn new(id: Vec<u8>, key: Vec<u8>, valid: Period) -> Result<Self, String> {
        if RawPublicKeyEntity::try_from(&SubjectPublicKeyInfoDer::from(&key[..])).is_err() {
            return Err("the key is not a public key in DER".to_owned());
        }
        Ok(Self { id, key, valid })
    }

    /// Returns the start of its identity, which notes name.
    pub(crate) fn hint(&self) -> &[u8] {
        self.id.get(..4).unwrap_or_default()
    }

    /// True if its key signed a message.
    pub(crate) fn signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let key = SubjectPublicKeyInfoDer::from(&self.key[..]);
        let Ok(key) = RawPublicKeyEntity::try_from(&key) else {
            return false;
        };
        ALGORITHMS
            .iter()
            .any(|algorithm| key.verify_signature(*algorithm, message, signature).is_ok())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    media_type: String,
    #[serde(default)]
    tlogs: Vec<FileLog>,
    #[serde(default)]
    certificate_authorities: Vec<FileAuthority>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileLog {
    public_key: FileKey,
    log_id: FileLogId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileKey {
    raw_bytes: String,
    valid_for: Option<FilePeriod>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileLogId {
    key_id: String,
}

#[derive(Deserialize)]
struct FilePeriod {
    start: Option<jiff::Timestamp>,
    end: Option<jiff::Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileAuthority {
    cert_chain: FileChain,
    valid_for: Option<FilePeriod>,
}

#[derive(Deserialize)]
struct FileChain {
    certificates: Vec<FileCertificate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileCertificate {
    raw_bytes: String,
}

impl TrustedRoot {
    /// Parses a root: JSON with the media type `application/vnd.dev.sigstore.trustedroot…`, or the certificates of authorities
    /// in PEM.
    ///
    /// # Errors
    /// [`BadRoot`] if it is of another type, or a part of it cannot be used.
    pub fn parse(text: &str) -> Result<Self, BadRoot> {
        if text.len() > MOST_BYTES {
            return Err(BadRoot(format!(
                "the trusted root has more than {MOST_BYTES} bytes"
            )));
        }
        let digest = Digest::of(text.as_bytes());
        if text.trim_start().starts_with('{') {
            let file: File = serde_json::from_str(text)
                .map_err(|error| BadRoot(format!("the trusted root is not valid: {error}")))?;
            return file.root(digest).map_err(BadRoot);
        }
        let anchors = certificates(text).ok_or_else(|| {
            let why =
                "the trusted root is neither JSON nor certificates in PEM (`BEGIN CERTIFICATE`)";
            BadRoot(why.to_owned())
        })?;
        for (number, der) in anchors.iter().enumerate() {
            let named = |why: String| BadRoot(format!("certificate {}: {why}", number + 1));
            is_authority(der).map_err(named)?;
        }
        let authority = Authority {
            anchors,
            intermediates: Vec::new(),
            valid: Period::default(),
        };
        Ok(Self {
            authorities: vec![authority],
            logs: Vec::new(),
            digest,
        })
    }

    /// Returns the digest of the root's text.
    pub fn fingerprint(&self) -> String {
        self.digest.to_string()
    }

    /// True if each signature must have an entry of a transparency log.
    pub fn needs_log(&self) -> bool {
        !self.logs.is_empty()
    }
}

impl File {
    fn root(self, digest: Digest) -> Result<TrustedRoot, String> {
        let Self {
            media_type,
            tlogs,
            certificate_authorities,
        } = self;
        if !media_type.starts_with(MEDIA_TYPE) {
            return Err(format!(
                "the trusted root has the media type `{}`, expected `{MEDIA_TYPE}+json;version=0.1`",
                super::shown(&media_type)
            ));
        }
        if certificate_authorities.is_empty() {
            return Err("the trusted root has no certificate authority".to_owned());
        }
        if certificate_authorities.len().max(tlogs.len()) > MOST_OF_EACH {
            return Err(format!(
                "the trusted root has more than {MOST_OF_EACH} authorities or logs"
            ));
        }
        let authorities = certificate_authorities.into_iter().enumerate();
        let authorities = authorities.map(|(at, authority)| {
            let named = |why| format!("certificateAuthorities[{at}]: {why}");
            authority.authority().map_err(named)
        });
        let logs = tlogs.into_iter().enumerate().map(|(at, log)| {
            let named = |why| format!("tlogs[{at}]: {why}");
            log.log().map_err(named)
        });
        Ok(TrustedRoot {
            authorities: authorities.collect::<Result<_, _>>()?,
            logs: logs.collect::<Result<_, _>>()?,
            digest,
        })
    }
}

impl FileAuthority {
    fn authority(self) -> Result<Authority, String> {
        let certificates = self.cert_chain.certificates;
        let mut chain = Vec::new();
        for certificate in &certificates {
            let der = decode(&certificate.raw_bytes, "a certificate")?;
            is_authority(&der)?;
            chain.push(der);
        }
        // The signer's end comes first.
        let anchor = chain.pop().ok_or("there is no certificate")?;
        Ok(Authority {
            anchors: vec![anchor],
            intermediates: chain,
            valid: period(self.valid_for),
        })
    }
}

impl FileLog {
    fn log(self) -> Result<Log, String> {
        let id = decode(&self.log_id.key_id, "the identity of the log")?;
        let key = decode(&self.public_key.raw_bytes, "the key of the log")?;
        Log::new(id, key, period(self.public_key.valid_for))
    }
}

fn period(period: Option<FilePeriod>) -> Period {
    period.map_or_else(Period::default, |FilePeriod { start, end }| Period {
        start,
        end,
    })
}

/// Checks that a certificate is one of an authority.
fn is_authority(der: &[u8]) -> Result<(), String> {
    let Ok(([], certificate)) = X509Certificate::from_der(der) else {
        return Err("it is not a valid certificate".to_owned());
    };
    if !certificate.is_ca() {
        return Err("it is not the certificate of an authority (basic constraints)".to_owned());
    }
    Ok(())
}
