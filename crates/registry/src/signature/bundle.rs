//! The current format: a Sigstore bundle with a DSSE envelope around an in-toto statement.
//!
//! Source: sigstore/protobuf-specs, `sigstore_bundle.proto`; secure-systems-lab/dsse, `protocol.md`; in-toto/attestation, `spec/v1`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::UnixTime;
use serde::Deserialize;
use serde_json::json;

use super::{
    KeyError, PrivateKey, Signer,
    keyless::{EntryKind, Material, SignedMessage},
};
use crate::Digest;

/// The type of the manifest and of its layer, and media type of the bundle.
pub const ARTIFACT_TYPE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// The common prefix of all versions of the type.
pub(crate) const ANY_VERSION: &str = "application/vnd.dev.sigstore.bundle";
/// The type of the payload.
const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// The valid types of a statement.
const STATEMENTS: [&str; 2] = [
    "https://in-toto.io/Statement/v1",
    "https://in-toto.io/Statement/v0.1",
];
/// The predicate of a statement that the subject is signed. Attestations have other predicates and are not signatures.
pub(crate) const PREDICATE: &str = "https://sigstore.dev/cosign/sign/v1";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Bundle {
    media_type: String,
    #[serde(default)]
    verification_material: Material,
    dsse_envelope: Option<Envelope>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    #[serde(default)]
    signatures: Vec<Signature>,
}

#[derive(Deserialize)]
struct Signature {
    sig: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Statement {
    #[serde(rename = "_type")]
    type_: String,
    #[serde(default)]
    subject: Vec<Subject>,
    predicate_type: String,
}

#[derive(Deserialize)]
struct Subject {
    digest: Digests,
}

#[derive(Deserialize)]
struct Digests {
    sha256: Option<String>,
}

/// Checks that the signer signed the bundle, and for this digest; returns the subject of its certificate, or the reason if not.
pub(crate) fn check(
    digest: &Digest,
    bytes: &[u8],
    signer: &Signer,
    now: UnixTime,
) -> Result<Option<String>, String> {
    let bundle: Bundle = serde_json::from_slice(bytes)
        .map_err(|error| format!("its bundle is not valid: {error}"))?;
    if !bundle.media_type.starts_with(ANY_VERSION) {
        return Err("its bundle has another media type".to_owned());
    }
    let envelope = bundle
        .dsse_envelope
        .ok_or("its bundle has no DSSE envelope")?;
    let payload = STANDARD
        .decode(&envelope.payload)
        .map_err(|_| "its payload is not base64".to_owned())?;
    let message = pae(&envelope.payload_type, &payload);
    let mut signatures = envelope.signatures.iter().take(16);
    let subject = match signer {
        Signer::Key(key) => {
            let is_signed = |signature: &Signature| {
                STANDARD
                    .decode(&signature.sig)
                    .is_ok_and(|signature| key.holds(&message, &signature))
            };
            if !signatures.any(is_signed) {
                return Err("it was not signed with the given key".to_owned());
            }
            None
        }
        Signer::Identity(identity) => {
            let evidence = bundle.verification_material.evidence()?;
            let [signature] = &envelope.signatures[..] else {
                return Err("its envelope does not have exactly one signature".to_owned());
            };
            let signature = STANDARD
                .decode(&signature.sig)
                .map_err(|_| "its signature is not base64".to_owned())?;
            let statement = SignedMessage {
                message: &message,
                signature: &signature,
                payload: &payload,
                kind: EntryKind::Dsse,
            };
            Some(identity.check(&evidence, &statement, now)?)
        }
    };
    names(digest, &envelope.payload_type, &payload)?;
    Ok(subject)
}

/// Checks that a payload is the signature of an artifact with this digest.
fn names(digest: &Digest, payload_type: &str, payload: &[u8]) -> Result<(), String> {
    if payload_type != PAYLOAD_TYPE {
        return Err("its payload is not an in-toto statement".to_owned());
    }
    let statement: Statement = serde_json::from_slice(payload)
        .map_err(|error| format!("its statement is not valid: {error}"))?;
    if !STATEMENTS.contains(&&*statement.type_) || statement.predicate_type != PREDICATE {
        return Err("its statement is not a signature of an artifact".to_owned());
    }
    let hex = digest.hex();
    if statement
        .subject
        .iter()
        .any(|subject| subject.digest.sha256.as_deref() == Some(&hex))
    {
        return Ok(());
    }
    let other = statement
        .subject
        .iter()
        .find_map(|subject| subject.digest.sha256.as_deref());
    Err(
        match other.and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok()) {
            Some(other) => format!("it is the signature of {other}"),
            None => "its statement names no digest".to_owned(),
        },
    )
}

/// Returns a bundle that signs a digest.
///
/// # Errors
/// [`KeyError::Signing`].
pub fn sign(digest: Digest, key: &PrivateKey) -> Result<Vec<u8>, KeyError> {
    let statement = json!({
        "_type": STATEMENTS[0],
        "subject": [{"digest": {"sha256": digest.hex()}}],
        "predicateType": PREDICATE,
        "predicate": {},
    });
    let payload = statement.to_string().into_bytes();
    let signature = key.sign(&pae(PAYLOAD_TYPE, &payload))?;
    let bundle = json!({
        "mediaType": ARTIFACT_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key.public()?.hint()}},
        "dsseEnvelope": {
            "payload": STANDARD.encode(&payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": STANDARD.encode(signature)}],
        },
    });
    Ok(bundle.to_string().into_bytes())
}

/// Returns the bytes to sign: "pre-authentication encoding".
fn pae(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {payload_type} {} ",
        payload_type.len(),
        payload.len()
    );
    [head.as_bytes(), payload].concat()
}

#[cfg(test)]
pub(crate) fn seal(payload_type: &str, statement: &serde_json::Value, key: &PrivateKey) -> Vec<u8> {
    let payload = statement.to_string().into_bytes();
    let signature = key.sign(&pae(payload_type, &payload)).unwrap();
    let bundle = json!({
        "mediaType": ARTIFACT_TYPE,
        "dsseEnvelope": {
            "payload": STANDARD.encode(&payload),
            "payloadType": payload_type,
            "signatures": [{"sig": STANDARD.encode(signature)}],
        },
    });
    bundle.to_string().into_bytes()
}
