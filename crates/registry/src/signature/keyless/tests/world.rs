//! An authority, a log, and signatures with one fault each.

use std::fmt::Write as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, PublicKeyData as _, SanType, SigningKey as _, date_time_ymd,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::super::{Annotations, Identity, TrustedRoot};
use crate::{Digest, signature::Candidate};

pub(crate) const ISSUER: &str = "https://accounts.example";
pub(crate) const SUBJECT: &str = "ada@harbour.example";
/// 2026-06-15T12:00:00Z.
pub(crate) const SIGNED_AT: i64 = 1_781_524_800;

/// A time after all certificates of signers expired.
pub(crate) fn now() -> &'static str {
    "2030-01-01T00:00:00Z"
}

/// The fault in the log's entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spoilt {
    Nothing,
    NoEntry,
    OtherLogKey,
    UnknownLog,
    OtherSignature,
    OtherDigest,
    OtherCertificate,
    OtherKind,
}

/// The properties of a signature; the default is a valid one.
#[derive(Clone, Debug)]
pub(crate) struct Knobs {
    pub(crate) issuer: Option<&'static str>,
    pub(crate) raw_issuer: Option<&'static str>,
    pub(crate) subject: &'static str,
    pub(crate) is_for_code: bool,
    pub(crate) other_authority: bool,
    pub(crate) other_key: bool,
    pub(crate) intermediates: usize,
    pub(crate) time: i64,
    pub(crate) digest: Digest,
    pub(crate) spoilt: Spoilt,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            issuer: Some(ISSUER),
            raw_issuer: None,
            subject: SUBJECT,
            is_for_code: true,
            other_authority: false,
            other_key: false,
            intermediates: 0,
            time: SIGNED_AT,
            digest: Digest::of(b"artifact"),
            spoilt: Spoilt::Nothing,
        }
    }
}

pub(crate) struct World {
    authority: Vec<u8>,
    authority_key: String,
    log: KeyPair,
}

fn authority_params(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2045, 1, 1);
    params
}

fn pem(der: &[u8]) -> String {
    let body = STANDARD.encode(der);
    format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n")
}

fn log_id(log: &KeyPair) -> [u8; 32] {
    Sha256::digest(log.subject_public_key_info()).into()
}

/// A certificate chain, the signer's first, with the signer's key.
struct Chain {
    certificates: Vec<Vec<u8>>,
    key: KeyPair,
}

impl World {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let certificate = authority_params("authority").self_signed(&key).unwrap();
        Self {
            authority: certificate.der().to_vec(),
            authority_key: key.serialize_pem(),
            log: KeyPair::generate().unwrap(),
        }
    }

    pub(crate) fn pem(&self) -> String {
        pem(&self.authority)
    }

    pub(crate) fn leaf_pem(&self) -> String {
        pem(&self.chain(&Knobs::default()).certificates[0])
    }

    /// Returns a trusted root with a change.
    pub(crate) fn root(&self, change: impl Fn(&mut Value)) -> String {
        let mut root = json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "certificateAuthorities": [{
                "certChain": {"certificates": [{"rawBytes": STANDARD.encode(&self.authority)}]},
                "validFor": {"start": "2021-01-01T00:00:00.000Z"},
            }],
            "tlogs": [{
                "baseUrl": "https://log.example",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": STANDARD.encode(self.log.subject_public_key_info()),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": {"start": "2021-01-01T00:00:00Z", "end": "2040-01-01T00:00:00Z"},
                },
                "logId": {"keyId": STANDARD.encode(log_id(&self.log))},
            }],
            "ctlogs": [], "timestampAuthorities": [],
        });
        change(&mut root);
        root.to_string()
    }

    pub(crate) fn identity(&self, subject: &str) -> Identity {
        let root = TrustedRoot::parse(&self.root(|_| ())).unwrap();
        Identity::new(ISSUER, subject, root).unwrap()
    }

    fn chain(&self, knobs: &Knobs) -> Chain {
        let key = if knobs.other_authority {
            KeyPair::generate().unwrap()
        } else {
            KeyPair::from_pem(&self.authority_key).unwrap()
        };
        let mut issuer = Issuer::new(authority_params("authority"), key);
        let mut certificates = Vec::new();
        for number in 0..knobs.intermediates {
            let (params, key) = (
                authority_params(&format!("intermediate {number}")),
                KeyPair::generate().unwrap(),
            );
            let certificate = params.signed_by(&key, &issuer).unwrap();
            certificates.insert(0, certificate.der().to_vec());
            issuer = Issuer::new(params, key);
        }
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2026, 6, 15);
        params.not_after = date_time_ymd(2026, 6, 16);
        if !knobs.subject.is_empty() {
            params.subject_alt_names = vec![SanType::Rfc822Name(knobs.subject.try_into().unwrap())];
        }
        params.extended_key_usages = vec![if knobs.is_for_code {
            ExtendedKeyUsagePurpose::CodeSigning
        } else {
            ExtendedKeyUsagePurpose::ServerAuth
        }];
        let oid = |last: u64| [1, 3, 6, 1, 4, 1, 57264, 1, last];
        if let Some(text) = knobs.issuer {
            let der = [&[0x0c, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
            let extension = CustomExtension::from_oid_content(&oid(8), der);
            params.custom_extensions.push(extension);
        }
        if let Some(text) = knobs.raw_issuer {
            let extension = CustomExtension::from_oid_content(&oid(1), text.into());
            params.custom_extensions.push(extension);
        }
        let key = KeyPair::generate().unwrap();
        let leaf = params.signed_by(&key, &issuer).unwrap();
        certificates.insert(0, leaf.der().to_vec());
        let key = if knobs.other_key {
            KeyPair::generate().unwrap()
        } else {
            key
        };
        Chain { certificates, key }
    }

    /// Returns a note for a tree with one entry, signed by the log or by another key.
    pub(crate) fn checkpoint(&self, root: &[u8; 32], is_ours: bool) -> String {
        let text = format!("log.example - 1\n1\n{}\n", STANDARD.encode(root));
        let other = KeyPair::generate().unwrap();
        let signature = if is_ours { &self.log } else { &other };
        let signature = signature.sign(text.as_bytes()).unwrap();
        let signature = [&log_id(&self.log)[..4], &signature].concat();
        format!(
            "{text}\n\u{2014} log.example {}\n",
            STANDARD.encode(signature)
        )
    }

    /// Returns the body, the identity of the log and its signature of both.
    fn entry(&self, knobs: &Knobs, body: &Value) -> (String, [u8; 32], Vec<u8>) {
        let other = KeyPair::generate().unwrap();
        let body = STANDARD.encode(body.to_string());
        let id = log_id(if knobs.spoilt == Spoilt::UnknownLog {
            &other
        } else {
            &self.log
        });
        let hex = hex(&id);
        let signed = format!(
            r#"{{"body":"{body}","integratedTime":{},"logID":"{hex}","logIndex":42}}"#,
            knobs.time
        );
        let key = match knobs.spoilt {
            Spoilt::OtherLogKey => &other,
            _ => &self.log,
        };
        (body, id, key.sign(signed.as_bytes()).unwrap())
    }

    /// Returns the digest, the signature and the certificate of an entry, in its encodings.
    fn named(knobs: &Knobs, payload: &[u8], signature: &[u8], leaf: &[u8]) -> [String; 3] {
        let digest = match knobs.spoilt {
            Spoilt::OtherDigest => Digest::of(b"other payload"),
            _ => Digest::of(payload),
        };
        let signature = match knobs.spoilt {
            Spoilt::OtherSignature => b"other signature",
            _ => signature,
        };
        let leaf = match knobs.spoilt {
            Spoilt::OtherCertificate => b"other certificate",
            _ => leaf,
        };
        [
            digest.hex(),
            STANDARD.encode(signature),
            STANDARD.encode(pem(leaf)),
        ]
    }

    /// Returns the entry of a bundle, with its inclusion promise and inclusion proof.
    fn proven_entry(&self, knobs: &Knobs, body: &Value) -> Value {
        let leaf_hash = Sha256::new_with_prefix([0]).chain_update(body.to_string());
        let leaf_hash: [u8; 32] = leaf_hash.finalize().into();
        let (body, id, promise) = self.entry(knobs, body);
        json!({
            "logIndex": "42",
            "logId": {"keyId": STANDARD.encode(id)},
            "integratedTime": knobs.time.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": STANDARD.encode(promise)},
            "inclusionProof": {
                "logIndex": "0", "treeSize": "1", "rootHash": STANDARD.encode(leaf_hash), "hashes": [],
                "checkpoint": {"envelope": self.checkpoint(&leaf_hash, true)},
            },
            "canonicalizedBody": body,
        })
    }

    pub(crate) fn bundle(&self, knobs: &Knobs) -> Value {
        let Chain { certificates, key } = self.chain(knobs);
        let payload_type = "application/vnd.in-toto+json";
        let payload = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"digest": {"sha256": knobs.digest.hex()}}],
            "predicateType": "https://sigstore.dev/cosign/sign/v1",
            "predicate": {},
        })
        .to_string();
        let message = format!("DSSEv1 28 {payload_type} {} {payload}", payload.len());
        let signature = key.sign(message.as_bytes()).unwrap();
        let [digest, named, verifier] =
            Self::named(knobs, payload.as_bytes(), &signature, &certificates[0]);
        let kind = if knobs.spoilt == Spoilt::OtherKind {
            "rfc3161"
        } else {
            "dsse"
        };
        let body = json!({"apiVersion": "0.0.1", "kind": kind, "spec": {
            "envelopeHash": {"algorithm": "sha256", "value": digest},
            "payloadHash": {"algorithm": "sha256", "value": digest},
            "signatures": [{"signature": named, "verifier": verifier}],
        }});
        let entry = self.proven_entry(knobs, &body);
        let entries = if knobs.spoilt == Spoilt::NoEntry {
            json!([])
        } else {
            json!([entry])
        };
        let raw = |der: &Vec<u8>| json!({"rawBytes": STANDARD.encode(der)});
        let mut material = json!({"tlogEntries": entries});
        match &certificates[..] {
            [leaf] => material["certificate"] = raw(leaf),
            chain => {
                let chain: Vec<Value> = chain.iter().map(raw).collect();
                material["x509CertificateChain"] = json!({"certificates": chain});
            }
        }
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": material,
            "dsseEnvelope": {
                "payload": STANDARD.encode(payload),
                "payloadType": payload_type,
                "signatures": [{"sig": STANDARD.encode(signature)}],
            },
        })
    }

    pub(crate) fn simple(&self, knobs: &Knobs) -> Candidate {
        let Chain { certificates, key } = self.chain(knobs);
        let payload = json!({"critical": {
            "identity": {"docker-reference": "registry.example/k/shop"},
            "image": {"docker-manifest-digest": knobs.digest.to_string()},
            "type": "cosign container image signature",
        }})
        .to_string();
        let signature = key.sign(payload.as_bytes()).unwrap();
        let [digest, named, verifier] =
            Self::named(knobs, payload.as_bytes(), &signature, &certificates[0]);
        let kind = if knobs.spoilt == Spoilt::OtherKind {
            "rfc3161"
        } else {
            "hashedrekord"
        };
        let body = json!({"apiVersion": "0.0.1", "kind": kind, "spec": {
            "data": {"hash": {"algorithm": "sha256", "value": digest}},
            "signature": {"content": named, "publicKey": {"content": verifier}},
        }});
        let (body, id, promise) = self.entry(knobs, &body);
        let hex = hex(&id);
        let entry = json!({
            "SignedEntryTimestamp": STANDARD.encode(promise),
            "Payload": {"body": body, "integratedTime": knobs.time, "logIndex": 42, "logID": hex},
        });
        let chain: String = certificates[1..].iter().map(|der| pem(der)).collect();
        Candidate::Simple {
            payload: payload.into(),
            signature: STANDARD.encode(signature),
            annotations: Annotations {
                certificate: Some(pem(&certificates[0])),
                chain: (!chain.is_empty()).then_some(chain),
                entry: (knobs.spoilt != Spoilt::NoEntry).then(|| entry.to_string()),
            },
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
