//! The older format: a signed JSON document ("simple signing") that contains the digest.
//!
//! Source: containers/image, "Atomic container signature format"; cosign, `specs/SIGNATURE_SPEC.md`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustls::pki_types::UnixTime;
use serde::{Deserialize, Serialize};

use super::{
    Annotations, KeyError, PrivateKey, Signer,
    keyless::{EntryKind, SignedMessage},
};
use crate::{Descriptor, Digest, Repository};

/// The media type of the layer with the document.
pub const PAYLOAD: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// The annotation of that layer with the signature, in base64.
pub const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// The annotations of a keyless signature: certificate, chain, and entry of a log.
const CERTIFICATE: &str = "dev.sigstore.cosign/certificate";
const CHAIN: &str = "dev.sigstore.cosign/chain";
const ENTRY: &str = "dev.sigstore.cosign/bundle";
/// The required type in the document.
const TYPE: &str = "cosign container image signature";

#[derive(Serialize, Deserialize)]
struct Document {
    critical: Critical,
    #[serde(default)]
    optional: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct Critical {
    identity: Identity,
    image: Image,
    #[serde(rename = "type")]
    type_: String,
}

#[derive(Serialize, Deserialize)]
struct Identity {
    #[serde(rename = "docker-reference")]
    docker_reference: String,
}

#[derive(Serialize, Deserialize)]
struct Image {
    #[serde(rename = "docker-manifest-digest")]
    digest: Digest,
}

/// Returns what a layer says about the certificate of its signature.
pub(crate) fn annotations(layer: &Descriptor) -> Annotations {
    let text = |name| layer.annotation(name).map(str::to_owned);
    Annotations {
        certificate: text(CERTIFICATE),
        chain: text(CHAIN),
        entry: text(ENTRY),
    }
}

/// Checks that the signer signed the document, and for this digest; returns the subject of its certificate, or the reason if
/// not.
pub(crate) fn check(
    digest: &Digest,
    payload: &[u8],
    (signature, annotations): (&str, &Annotations),
    signer: &Signer,
    now: UnixTime,
) -> Result<Option<String>, String> {
    let signature = STANDARD
        .decode(signature)
        .map_err(|_| "its signature is not base64".to_owned())?;
    let subject = match signer {
        Signer::Key(key) if key.holds(payload, &signature) => None,
        Signer::Key(_) => return Err("it was not signed with the given key".to_owned()),
        Signer::Identity(identity) => {
            let document = SignedMessage {
                message: payload,
                signature: &signature,
                payload,
                kind: EntryKind::HashedRekord,
            };
            Some(identity.check(&annotations.evidence()?, &document, now)?)
        }
    };
    names(digest, payload)?;
    Ok(subject)
}

/// Checks that a document is the signature of an artifact with this digest.
fn names(digest: &Digest, payload: &[u8]) -> Result<(), String> {
    let document: Document = serde_json::from_slice(payload)
        .map_err(|error| format!("its payload is not valid: {error}"))?;
    let Critical { type_, image, .. } = document.critical;
    if type_ != TYPE {
        return Err("its payload is not a signature of an artifact".to_owned());
    }
    if image.digest != *digest {
        return Err(format!("it is the signature of {}", image.digest));
    }
    Ok(())
}

/// Returns the document for a digest and its signature in base64.
///
/// # Errors
/// [`KeyError::Signing`].
pub fn sign(
    repository: &Repository,
    digest: Digest,
    key: &PrivateKey,
) -> Result<(Vec<u8>, String), KeyError> {
    let document = Document {
        critical: Critical {
            identity: Identity {
                docker_reference: repository.to_string(),
            },
            image: Image { digest },
            type_: TYPE.to_owned(),
        },
        optional: None,
    };
    let payload = serde_json::to_vec(&document).map_err(|_| KeyError::Signing)?;
    let signature = key.sign(&payload)?;
    Ok((payload, STANDARD.encode(signature)))
}
