//! Verifies entries of transparency logs: a trusted log accepted the entry, at which time, and for which signature.
//!
//! Source: sigstore/rekor, `pkg/verify` and `pkg/types/{hashedrekord,dsse}/v0.0.1`; RFC 8785 (the signed JSON).

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::UnixTime;
use serde::Deserialize;

use super::{
    EntryKind, Evidence, SignedMessage,
    evidence::{Entry, certificates},
    proof,
    root::TrustedRoot,
    shown,
};
use crate::Digest;

/// Returns the entry that a log of the root signed; none if the root has no logs.
pub(crate) fn entry<'a>(
    evidence: &'a Evidence,
    root: &TrustedRoot,
) -> Result<Option<&'a Entry>, String> {
    if !root.needs_log() {
        return Ok(None);
    }
    let mut why = if evidence.has_timestamps {
        "it has no entry of a transparency log, and timestamps of an authority (RFC 3161) are not supported"
    } else {
        "it has no entry of a transparency log, and the trusted root requires one"
    }
    .to_owned();
    for entry in &evidence.entries {
        match check(entry, evidence, root) {
            Ok(()) => return Ok(Some(entry)),
            Err(reason) => why = reason,
        }
    }
    Err(why)
}

/// Checks that a log of the root signed the entry and its time.
fn check(entry: &Entry, evidence: &Evidence, root: &TrustedRoot) -> Result<(), String> {
    let log = root.logs.iter().find(|log| log.id == entry.log);
    let log = log.ok_or_else(|| {
        format!(
            "its log entry is of the log {}, which the trusted root does not have",
            shown(&STANDARD.encode(&entry.log))
        )
    })?;
    let Some(promise) = &entry.promise else {
        let and = if evidence.has_timestamps {
            "; timestamps of an authority (RFC 3161) are not supported"
        } else {
            ""
        };
        return Err(format!(
            "its log entry has no signed timestamp: the time of the signature is not known{and}"
        ));
    };
    entry.bytes()?;
    // In the order and without the white space of canonical JSON. `body` is base64.
    let mut log_id = String::new();
    for byte in &entry.log {
        // Writing to a string does not fail.
        let _ = write!(log_id, "{byte:02x}");
    }
    let message = format!(
        r#"{{"body":"{}","integratedTime":{},"logID":"{log_id}","logIndex":{}}}"#,
        entry.body, entry.time, entry.index
    );
    if !log.signed(message.as_bytes(), promise) {
        return Err("the log did not sign the timestamp of its log entry".to_owned());
    }
    let time: UnixTime = entry.unix_time()?;
    if !log.valid.contains(time) {
        return Err("the key of the log was not valid at the time of its log entry".to_owned());
    }
    match &entry.proof {
        Some(proof) => proof::check(proof, &entry.bytes()?, log),
        None => Ok(()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    api_version: String,
    kind: String,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    data: Option<Data>,
    signature: Option<BodySignature>,
    payload_hash: Option<Hash>,
    #[serde(default)]
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct Data {
    hash: Hash,
}

#[derive(Deserialize)]
struct Hash {
    algorithm: String,
    value: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BodySignature {
    content: String,
    public_key: BodyKey,
}

#[derive(Deserialize)]
struct BodyKey {
    content: String,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    signature: String,
    verifier: String,
}

/// Checks that an entry is about this payload, this signature and this certificate.
pub(crate) fn is_about(
    entry: &Entry,
    signed: &SignedMessage<'_>,
    leaf: &[u8],
) -> Result<(), String> {
    let body: Body = serde_json::from_slice(&entry.bytes()?)
        .map_err(|error| format!("the body of its log entry is not valid: {error}"))?;
    let expected = match signed.kind {
        EntryKind::HashedRekord => "hashedrekord",
        EntryKind::Dsse => "dsse",
    };
    if body.kind != expected || body.api_version != "0.0.1" {
        return Err(format!(
            "its log entry is a `{} {}`, expected `{expected} 0.0.1`",
            shown(&body.kind),
            shown(&body.api_version)
        ));
    }
    let Spec {
        data,
        signature,
        payload_hash,
        signatures,
    } = body.spec;
    let (hash, signature, verifier) = match signed.kind {
        EntryKind::HashedRekord => {
            let signature = signature.ok_or("its log entry has no signature")?;
            let hash = data.map(|data| data.hash);
            (hash, signature.content, signature.public_key.content)
        }
        EntryKind::Dsse => {
            let [signature] = <[EnvelopeSignature; 1]>::try_from(signatures)
                .map_err(|_| "its log entry does not have exactly one signature".to_owned())?;
            (payload_hash, signature.signature, signature.verifier)
        }
    };
    let hash = hash.ok_or("its log entry has no digest")?;
    let digest = Digest::of(signed.payload).hex();
    if hash.algorithm != "sha256" || hash.value != digest {
        return Err(format!(
            "its log entry is about the digest {}:{}, expected sha256:{digest}",
            shown(&hash.algorithm),
            shown(&hash.value)
        ));
    }
    if STANDARD.decode(signature).ok().as_deref() != Some(signed.signature) {
        return Err("its log entry is about another signature".to_owned());
    }
    let verifier = STANDARD.decode(verifier).ok();
    let verifier = verifier.and_then(|pem| String::from_utf8(pem).ok());
    let verifier = verifier.and_then(|pem| certificates(&pem));
    if verifier.is_none_or(|found| found.first().map(Vec::as_slice) != Some(leaf)) {
        return Err("its log entry is about another certificate".to_owned());
    }
    Ok(())
}
