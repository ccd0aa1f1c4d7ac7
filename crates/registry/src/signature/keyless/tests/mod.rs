//! Keyless signatures, made with a certificate authority and a transparency log that the tests create.

mod refused;
mod world;

use serde_json::{Value, json};

use self::world::{ISSUER, Knobs, SUBJECT, Spoilt, World, now};
use super::{Identity, TrustedRoot};
use crate::{
    Digest,
    signature::{Candidate, Format, PrivateKey, Signer, verify, verify_by},
};

/// Verifies a signature; returns the subject or the message.
fn judge(candidate: Candidate, identity: &Identity, at: &str) -> Result<String, String> {
    let signers = [Signer::Identity(identity.clone())];
    let verified = verify_by(
        &Digest::of(b"artifact"),
        &[candidate],
        &signers,
        &Format::ALL,
        at.parse().unwrap(),
    );
    let verified = verified.map_err(|refused| refused.to_string())?;
    Ok(verified.subject.unwrap())
}

fn both(world: &World, knobs: &Knobs) -> [Candidate; 2] {
    [
        Candidate::Bundle(world.bundle(knobs).to_string().into()),
        world.simple(knobs),
    ]
}

#[test]
fn a_good_signature_holds_in_both_formats_long_after_its_certificate_expired() {
    let world = World::new();
    for pattern in [SUBJECT, "*@harbour.example", "*"] {
        for candidate in both(&world, &Knobs::default()) {
            let identity = world.identity(pattern);
            let verified = judge(candidate, &identity, "2035-01-01T00:00:00Z");
            assert_eq!(verified.as_deref(), Ok(SUBJECT));
        }
    }
    for knobs in [
        Knobs {
            intermediates: 2,
            ..Knobs::default()
        },
        Knobs {
            raw_issuer: Some(ISSUER),
            ..Knobs::default()
        },
        Knobs {
            issuer: None,
            raw_issuer: Some(ISSUER),
            ..Knobs::default()
        },
    ] {
        for candidate in both(&world, &knobs) {
            assert_eq!(
                judge(candidate, &world.identity(SUBJECT), now()).as_deref(),
                Ok(SUBJECT)
            );
        }
    }
}

#[test]
fn a_bundle_needs_a_signed_time_and_its_proof_is_checked() {
    let world = World::new();
    let knobs = Knobs::default();
    let judged = |change: &dyn Fn(&mut Value)| {
        let mut bundle = world.bundle(&knobs);
        change(&mut bundle["verificationMaterial"]);
        let candidate = Candidate::Bundle(bundle.to_string().into());
        judge(candidate, &world.identity(SUBJECT), now())
    };
    assert!(judged(&|_| ()).is_ok());
    let said = judged(&|material| material["tlogEntries"][0]["inclusionPromise"] = Value::Null);
    assert!(said.unwrap_err().contains("has no signed timestamp"));
    let said = judged(&|material| {
        material["tlogEntries"] = json!([]);
        material["timestampVerificationData"] =
            json!({"rfc3161Timestamps": [{"signedTimestamp": "AA=="}]});
    });
    assert!(said.unwrap_err().contains("(RFC 3161) are not supported"));
    let proof = |change: &dyn Fn(&mut Value)| {
        judged(&|material| change(&mut material["tlogEntries"][0]["inclusionProof"])).unwrap_err()
    };
    let said =
        proof(&|proof| proof["checkpoint"]["envelope"] = json!(world.checkpoint(&[7; 32], true)));
    assert!(said.contains("of another tree"), "{said}");
    let hash = world.bundle(&knobs)["verificationMaterial"]["tlogEntries"][0]["inclusionProof"]["rootHash"].clone();
    let said = proof(&|proof| {
        let hash = super::evidence::decode(hash.as_str().unwrap(), "").unwrap();
        proof["checkpoint"]["envelope"] = json!(world.checkpoint(&hash.try_into().unwrap(), false));
    });
    assert!(said.contains("did not sign the checkpoint"), "{said}");
    let said = proof(&|proof| proof["rootHash"] = json!("AAAA"));
    assert!(said.contains("leads to another hash"), "{said}");
    let said = proof(&|proof| proof["treeSize"] = json!("2"));
    assert!(
        said.contains("proof of its log entry is not valid"),
        "{said}"
    );
}

/// Returns the pointers to all texts of a document.
fn texts(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::String(_) => found.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                texts(item, &format!("{at}/{index}"), found);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                texts(field, &format!("{at}/{name}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn garbage_in_any_field_is_refused() {
    let world = World::new();
    let identity = world.identity(SUBJECT);
    let knobs = Knobs {
        intermediates: 1,
        ..Knobs::default()
    };
    let bundle = world.bundle(&knobs);
    let mut fields = Vec::new();
    texts(&bundle, "", &mut fields);
    assert!(fields.len() > 12, "{fields:?}");
    let long = "A".repeat(400 << 10);
    for field in fields {
        for garbage in ["", "x", "AAAA", "-1", "\u{0}", &*long] {
            let mut spoilt = bundle.clone();
            *spoilt.pointer_mut(&field).unwrap() = json!(garbage);
            let candidate = Candidate::Bundle(spoilt.to_string().into());
            let judged = judge(candidate, &identity, now());
            assert!(judged.is_err(), "{field}: {garbage:.10}");
            assert!(judged.unwrap_err().len() < 2000, "{field}");
        }
    }
    for garbage in [
        "",
        "x",
        "{}",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        &*long,
    ] {
        for field in 0..3 {
            let Candidate::Simple {
                payload,
                signature,
                mut annotations,
            } = world.simple(&knobs)
            else {
                unreachable!()
            };
            let chosen = match field {
                0 => &mut annotations.certificate,
                1 => &mut annotations.entry,
                _ => &mut annotations.chain,
            };
            *chosen = Some(garbage.to_owned());
            let candidate = Candidate::Simple {
                payload,
                signature,
                annotations,
            };
            assert!(
                judge(candidate, &identity, now()).is_err(),
                "{field}: {garbage:.10}"
            );
        }
    }
}

#[test]
fn a_root_without_logs_needs_no_entry_and_a_certificate_that_is_valid_now() {
    let world = World::new();
    let knobs = Knobs {
        spoilt: Spoilt::NoEntry,
        ..Knobs::default()
    };
    for root in [world.pem(), world.root(|root| root["tlogs"] = json!([]))] {
        let root = TrustedRoot::parse(&root).unwrap();
        assert!(!root.needs_log());
        let identity = Identity::new(ISSUER, SUBJECT, root).unwrap();
        for candidate in both(&world, &knobs) {
            let verified = judge(candidate.clone(), &identity, "2026-06-15T12:00:00Z");
            assert_eq!(verified.as_deref(), Ok(SUBJECT));
            let said = judge(candidate, &identity, now()).unwrap_err();
            assert!(said.contains("its certificate expired"), "{said}");
        }
        let other = Knobs {
            other_authority: true,
            ..knobs.clone()
        };
        for candidate in both(&world, &other) {
            assert!(judge(candidate, &identity, "2026-06-15T12:00:00Z").is_err());
        }
    }
}

#[test]
fn a_signature_with_a_key_is_none_of_an_identity_and_the_reverse() {
    let world = World::new();
    let key = PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap();
    let digest = Digest::of(b"artifact");
    let by_key = Candidate::Bundle(crate::signature::sign_bundle(digest, &key).unwrap().into());
    let said = judge(by_key, &world.identity(SUBJECT), now()).unwrap_err();
    assert!(
        said.contains("it has no certificate: it was signed with a key"),
        "{said}"
    );
    for candidate in both(&world, &Knobs::default()) {
        let keys = [key.public().unwrap()];
        let refused = verify(
            &digest,
            std::slice::from_ref(&candidate),
            &keys,
            &Format::ALL,
        )
        .unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("not signed with the given key")
        );
        // One matching signer is sufficient; if none matches, the message contains the reasons for all.
        let signers = [
            Signer::Key(keys[0].clone()),
            Signer::Identity(world.identity(SUBJECT)),
        ];
        let time = now().parse().unwrap();
        let verified = verify_by(
            &digest,
            std::slice::from_ref(&candidate),
            &signers,
            &Format::ALL,
            time,
        );
        assert_eq!(verified.unwrap().signer, 1);
        let signers = [signers[0].clone(), Signer::Identity(world.identity("eve"))];
        let refused = verify_by(&digest, &[candidate], &signers, &Format::ALL, time).unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("given key, its certificate is of"), "{said}");
    }
}

#[test]
fn roots_that_cannot_be_used_are_refused_with_the_part() {
    let world = World::new();
    let leaf = world.leaf_pem();
    let cases = [
        (String::new(), "neither JSON nor certificates"),
        (
            "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_owned(),
            "neither JSON",
        ),
        (
            leaf,
            "certificate 1: it is not the certificate of an authority",
        ),
        ("{}".to_owned(), "mediaType"),
        ("x".repeat(1 << 20), "more than"),
        (
            world.root(|root| root["mediaType"] = json!("text/plain")),
            "media type `text/plain`",
        ),
        (
            world.root(|root| root["certificateAuthorities"] = json!([])),
            "no certificate authority",
        ),
        (
            world.root(|root| root["tlogs"][0]["publicKey"]["rawBytes"] = json!("AAAA")),
            "tlogs[0]: the key is not",
        ),
        (
            world.root(|root| {
                root["certificateAuthorities"][0]["certChain"]["certificates"][0]["rawBytes"] =
                    json!("AAAA");
            }),
            "certificateAuthorities[0]: it is not a valid certificate",
        ),
    ];
    for (text, expected) in cases {
        let said = TrustedRoot::parse(&text).unwrap_err().to_string();
        assert!(said.contains(expected), "{said}\nexpected: {expected}");
    }
    let root = TrustedRoot::parse(&world.pem()).unwrap();
    assert!(Identity::new("", SUBJECT, root.clone()).is_err());
    assert!(Identity::new(ISSUER, "", root).is_err());
}
