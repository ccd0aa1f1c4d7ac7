//! The evidence that comes with a signature: its certificate, the certificate chain, and entries of transparency logs.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::UnixTime;
use serde::{Deserialize, Deserializer, de::Error as _};

use super::super::pem;

/// The most certificates, from the signer's to the authority's.
pub(crate) const MOST_CERTIFICATES: usize = 4;
/// The most entries of one signature.
const MOST_ENTRIES: usize = 4;
/// The most hashes of a proof: a log with 2^64 entries has as many.
const MOST_HASHES: usize = 64;
/// The longest certificate or entry, in bytes.
const MOST_BYTES: usize = 256 << 10;

/// The annotations of a "simple signing" document that make it a keyless signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Annotations {
    /// `dev.sigstore.cosign/certificate`: the certificate in PEM.
    pub certificate: Option<String>,
    /// `dev.sigstore.cosign/chain`: the certificates of its authorities in PEM.
    pub chain: Option<String>,
    /// `dev.sigstore.cosign/bundle`: the entry of the log in JSON.
    pub entry: Option<String>,
}

/// The evidence of a signature, not yet verified.
#[derive(Debug)]
pub(crate) struct Evidence {
    /// The certificate of the signer.
    pub(crate) leaf: Vec<u8>,
    /// The certificates of its authorities, as the signature names them.
    pub(crate) chain: Vec<Vec<u8>>,
    /// The entries of logs.
    pub(crate) entries: Vec<Entry>,
    /// True if it has timestamps of an authority (RFC 3161).
    pub(crate) has_timestamps: bool,
}

/// An entry of a transparency log.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The entry in base64: the log signs this text.
    pub(crate) body: String,
    /// The time at which the log accepted it, in seconds since 1970.
    pub(crate) time: i64,
    /// Its index among all entries.
    pub(crate) index: i64,
    /// The log.
    pub(crate) log: Vec<u8>,
    /// The log's signature of these four.
    pub(crate) promise: Option<Vec<u8>>,
    /// The proof that the log contains it.
    pub(crate) proof: Option<InclusionProof>,
}

impl Entry {
    /// Returns the time at which the log accepted it.
    pub(crate) fn unix_time(&self) -> Result<UnixTime, String> {
        let seconds = u64::try_from(self.time)
            .map_err(|_| "the time of its log entry is before 1970".to_owned())?;
        Ok(UnixTime::since_unix_epoch(std::time::Duration::from_secs(
            seconds,
        )))
    }

    /// Returns the entry's bytes.
    pub(crate) fn bytes(&self) -> Result<Vec<u8>, String> {
        decode(&self.body, "the body of its log entry")
    }
}

/// A proof that a log contains an entry.
#[derive(Debug)]
pub(crate) struct InclusionProof {
    /// The index in the tree.
    pub(crate) index: u64,
    /// The number of entries of the tree.
    pub(crate) size: u64,
    /// The hash of the tree.
    pub(crate) root: Vec<u8>,
    /// The hashes beside the path from the entry to the root.
    pub(crate) hashes: Vec<Vec<u8>>,
    /// The signed size and hash of the tree.
    pub(crate) checkpoint: String,
}

/// `verificationMaterial` of a bundle.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Material {
    certificate: Option<Raw>,
    x509_certificate_chain: Option<Chain>,
    tlog_entries: Vec<TlogEntry>,
    timestamp_verification_data: Option<Timestamps>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    raw_bytes: String,
}

#[derive(Deserialize)]
struct Chain {
    #[serde(default)]
    certificates: Vec<Raw>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Timestamps {
    #[serde(default)]
    rfc3161_timestamps: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TlogEntry {
    #[serde(default, deserialize_with = "int")]
    log_index: i64,
    log_id: LogId,
    #[serde(default, deserialize_with = "int")]
    integrated_time: i64,
    inclusion_promise: Option<Promise>,
    inclusion_proof: Option<TlogProof>,
    canonicalized_body: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LogId {
    key_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Promise {
    signed_entry_timestamp: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TlogProof {
    #[serde(default, deserialize_with = "int")]
    log_index: i64,
    #[serde(default, deserialize_with = "int")]
    tree_size: i64,
    root_hash: String,
    #[serde(default)]
    hashes: Vec<String>,
    checkpoint: Option<Checkpoint>,
}

#[derive(Deserialize)]
struct Checkpoint {
    envelope: String,
}

/// The annotation with the entry of a log.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct OldEntry {
    signed_entry_timestamp: String,
    payload: OldPayload,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OldPayload {
    body: String,
    integrated_time: i64,
    log_index: i64,
    #[serde(rename = "logID")]
    log_id: String,
}

impl Material {
    /// Returns the evidence of a bundle.
    pub(crate) fn evidence(&self) -> Result<Evidence, String> {
        let listed = self.x509_certificate_chain.as_ref();
        let listed = listed.map_or(&[][..], |chain| &chain.certificates);
        let certificates: Vec<&Raw> = self.certificate.iter().chain(listed).collect();
        if certificates.len() > MOST_CERTIFICATES {
            return Err(too_long(certificates.len()));
        }
        let mut certificates = certificates
            .into_iter()
            .map(|raw| decode(&raw.raw_bytes, "its certificate"));
        let leaf = certificates.next().ok_or_else(no_certificate)??;
        if self.tlog_entries.len() > MOST_ENTRIES {
            return Err(format!("it has more than {MOST_ENTRIES} log entries"));
        }
        let timestamps = self.timestamp_verification_data.as_ref();
        Ok(Evidence {
            leaf,
            chain: certificates.collect::<Result<_, _>>()?,
            entries: self
                .tlog_entries
                .iter()
                .map(TlogEntry::entry)
                .collect::<Result<_, _>>()?,
            has_timestamps: timestamps.is_some_and(|data| !data.rfc3161_timestamps.is_empty()),
        })
    }
}

impl TlogEntry {
    fn entry(&self) -> Result<Entry, String> {
        let promise = self.inclusion_promise.as_ref();
        let promise = promise.map(|promise| {
            decode(
                &promise.signed_entry_timestamp,
                "the timestamp of its log entry",
            )
        });
        Ok(Entry {
            body: self.canonicalized_body.clone(),
            time: self.integrated_time,
            index: self.log_index,
            log: decode(&self.log_id.key_id, "the log of its log entry")?,
            promise: promise.transpose()?,
            proof: self
                .inclusion_proof
                .as_ref()
                .map(TlogProof::proof)
                .transpose()?,
        })
    }
}

impl TlogProof {
    fn proof(&self) -> Result<InclusionProof, String> {
        if self.hashes.len() > MOST_HASHES {
            return Err(format!("its proof has more than {MOST_HASHES} hashes"));
        }
        let number = |value: i64| {
            u64::try_from(value).map_err(|_| "its proof has a negative number".to_owned())
        };
        let hashes = self.hashes.iter();
        let checkpoint = self.checkpoint.as_ref();
        let checkpoint = checkpoint.ok_or("its proof has no checkpoint")?;
        Ok(InclusionProof {
            index: number(self.log_index)?,
            size: number(self.tree_size)?,
            root: decode(&self.root_hash, "the hash of its proof")?,
            hashes: hashes
                .map(|hash| decode(hash, "a hash of its proof"))
                .collect::<Result<_, _>>()?,
            checkpoint: checkpoint.envelope.clone(),
        })
    }
}

impl Annotations {
    /// Returns the evidence of a "simple signing" document.
    pub(crate) fn evidence(&self) -> Result<Evidence, String> {
        let certificate = self.certificate.as_deref().ok_or_else(no_certificate)?;
        let mut certificates = certificates(certificate)
            .ok_or_else(|| "its certificate is not one in PEM".to_owned())?;
        if let Some(chain) = self.chain.as_deref().filter(|chain| !chain.is_empty()) {
            let chain = self::certificates(chain);
            certificates.extend(chain.ok_or("its chain is not of certificates in PEM")?);
        }
        if certificates.len() > MOST_CERTIFICATES {
            return Err(too_long(certificates.len()));
        }
        let chain = certificates.split_off(1);
        let leaf = certificates.pop().ok_or_else(no_certificate)?;
        let entry = self.entry.as_deref().map(old_entry).transpose()?;
        Ok(Evidence {
            leaf,
            chain,
            entries: entry.into_iter().collect(),
            has_timestamps: false,
        })
    }
}

fn old_entry(text: &str) -> Result<Entry, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("its log entry has more than {MOST_BYTES} bytes"));
    }
    let OldEntry {
        signed_entry_timestamp,
        payload,
    } = serde_json::from_str(text)
        .map_err(|error| format!("its log entry is not valid: {error}"))?;
    let log = unhex(&payload.log_id)
        .ok_or_else(|| "the log of its log entry is not hexadecimal".to_owned())?;
    Ok(Entry {
        body: payload.body,
        time: payload.integrated_time,
        index: payload.log_index,
        log,
        promise: Some(decode(
            &signed_entry_timestamp,
            "the timestamp of its log entry",
        )?),
        proof: None,
    })
}

/// Returns the certificates of a text in PEM; none if there is another block or no block.
pub(crate) fn certificates(text: &str) -> Option<Vec<Vec<u8>>> {
    let blocks = pem::read_all(text, MOST_BYTES)?;
    let is_certificate = |(label, _): &(&str, Vec<u8>)| *label == "CERTIFICATE";
    if blocks.is_empty() || !blocks.iter().all(is_certificate) {
        return None;
    }
    Some(blocks.into_iter().map(|(_, der)| der).collect())
}

/// Decodes base64 of a limited length.
pub(crate) fn decode(text: &str, what: &str) -> Result<Vec<u8>, String> {
    if text.len() > MOST_BYTES {
        return Err(format!("{what} has more than {MOST_BYTES} bytes"));
    }
    STANDARD
        .decode(text)
        .map_err(|_| format!("{what} is not base64"))
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect()
}

fn no_certificate() -> String {
    "it has no certificate: it was signed with a key".to_owned()
}

fn too_long(found: usize) -> String {
    format!("it has {found} certificates, more than {MOST_CERTIFICATES}")
}

/// A number, which JSON of protocol buffers writes as a text.
fn int<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Int {
        Number(i64),
        Text(String),
    }
    match Int::deserialize(deserializer)? {
        Int::Number(number) => Ok(number),
        Int::Text(text) => text
            .parse()
            .map_err(|_| D::Error::custom("expected a number")),
    }
}
