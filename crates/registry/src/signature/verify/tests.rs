//! Verification of signatures with key pairs: fixtures of cosign, changed bytes, and other keys.

use serde_json::json;

use super::*;
use crate::{
    Repository,
    signature::{PrivateKey, sign_bundle, sign_simple},
};

/// The digest that the fixtures sign.
const SIGNED: &str = "sha256:2f821d35772f3459e9915736360c38f6ad284c8793eb380f4e3b8d1d3b7347d3";
const SIMPLE_SIGNATURE: &str = "MEYCIQDtMuaQsXaZ+SOBLZIk4nhyJEWnsDtnB2eg8M/UU9sIbAIhAPU/toULMXADTEjLR0X+loFWRA+w9YgaMSnaGEGnnAV6";

fn cosign_key() -> PublicKey {
    PublicKey::from_pem(include_str!("../fixtures/cosign.pub")).unwrap()
}

fn cosign_bundle() -> Candidate {
    Candidate::Bundle(Bytes::from_static(include_bytes!(
        "../fixtures/bundle.json"
    )))
}

fn cosign_simple() -> Candidate {
    Candidate::Simple {
        payload: Bytes::from_static(include_bytes!("../fixtures/simple.json")),
        signature: SIMPLE_SIGNATURE.to_owned(),
        annotations: Annotations::default(),
    }
}

fn other_key() -> PrivateKey {
    PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap()
}

fn why(digest: &Digest, candidate: Candidate, key: &PublicKey) -> String {
    let keys = std::slice::from_ref(key);
    verify(digest, &[candidate], keys, &Format::ALL)
        .unwrap_err()
        .to_string()
}

#[test]
fn what_cosign_signed_holds_in_both_formats() {
    let digest = SIGNED.parse().unwrap();
    let keys = [other_key().public().unwrap(), cosign_key()];
    for (candidate, format) in [
        (cosign_bundle(), Format::Bundle),
        (cosign_simple(), Format::Simple),
    ] {
        let verified = verify(&digest, &[candidate], &keys, &Format::ALL).unwrap();
        assert_eq!(
            verified,
            Verified {
                digest,
                signer: 1,
                subject: None,
                format
            }
        );
    }
}

#[test]
fn another_key_another_digest_and_no_signature_are_refused() {
    let digest: Digest = SIGNED.parse().unwrap();
    let other = Digest::of(b"other");
    let stranger = other_key().public().unwrap();
    for candidate in [cosign_bundle(), cosign_simple()] {
        let said = why(&digest, candidate.clone(), &stranger);
        assert!(said.contains("not signed with the given key"), "{said}");
        let said = why(&other, candidate, &cosign_key());
        assert!(
            said.contains(&format!("it is the signature of {SIGNED}")),
            "{said}"
        );
    }
    let none = verify(&digest, &[], &[cosign_key()], &Format::ALL).unwrap_err();
    assert!(none.to_string().contains("has no signature"), "{none}");
    assert!(verify(&digest, &[cosign_bundle()], &[], &Format::ALL).is_err());
}

#[test]
fn every_changed_byte_is_noticed() {
    let digest: Digest = SIGNED.parse().unwrap();
    let key = cosign_key();
    let (
        Candidate::Bundle(bundle),
        Candidate::Simple {
            payload, signature, ..
        },
    ) = (cosign_bundle(), cosign_simple())
    else {
        unreachable!()
    };
    // Changes of the unsigned parts, the key hint and white space, are accepted.
    let envelope = bundle
        .windows(9)
        .position(|window| window == b"\"payload\"")
        .unwrap();
    let end = bundle.len() - 4;
    for at in (envelope..end).filter(|at| bundle[*at].is_ascii_alphanumeric()) {
        let mut changed = bundle.to_vec();
        changed[at] ^= 1;
        why(&digest, Candidate::Bundle(changed.into()), &key);
    }
    for at in 0..payload.len() {
        let mut changed = payload.to_vec();
        changed[at] ^= 1;
        let changed = Candidate::Simple {
            payload: changed.into(),
            signature: signature.clone(),
            annotations: Annotations::default(),
        };
        let said = why(&digest, changed, &key);
        assert!(said.contains("not signed with"), "{said}");
    }
}

#[test]
fn a_downgrade_to_a_format_that_is_not_accepted_is_refused() {
    let digest = SIGNED.parse().unwrap();
    let found = [cosign_simple()];
    let refused = verify(&digest, &found, &[cosign_key()], &[Format::Bundle]).unwrap_err();
    assert!(
        refused.to_string().contains("this format is not accepted"),
        "{refused}"
    );
}

#[test]
fn statements_of_other_kinds_are_no_signatures_though_the_key_signed_them() {
    let (key, digest) = (other_key(), Digest::of(b"x"));
    let statement = |type_: &str, predicate: &str, subject: serde_json::Value| json!({"_type": type_, "predicateType": predicate, "subject": subject, "predicate": {}});
    let subject = json!([{"digest": {"sha256": digest.hex()}}]);
    let (v1, sign) = (
        "https://in-toto.io/Statement/v1",
        "https://sigstore.dev/cosign/sign/v1",
    );
    let in_toto = "application/vnd.in-toto+json";
    let cases = [
        (
            in_toto,
            statement(v1, "https://slsa.dev/provenance/v1", subject.clone()),
            "not a signature",
        ),
        (
            in_toto,
            statement("https://example.org", sign, subject.clone()),
            "not a signature",
        ),
        (
            "text/plain",
            statement(v1, sign, subject.clone()),
            "not an in-toto",
        ),
        (in_toto, statement(v1, sign, json!([])), "names no digest"),
        (
            in_toto,
            statement(v1, sign, json!([{"digest": {"sha512": "00"}}])),
            "names no digest",
        ),
        (in_toto, json!({}), "not valid"),
    ];
    for (payload_type, statement, expected) in cases {
        let sealed = bundle::seal(payload_type, &statement, &key);
        let said = why(
            &digest,
            Candidate::Bundle(sealed.into()),
            &key.public().unwrap(),
        );
        assert!(said.contains(expected), "{said}");
    }
    let good = bundle::seal(in_toto, &statement(v1, sign, subject), &key);
    assert!(
        verify(
            &digest,
            &[Candidate::Bundle(good.into())],
            &[key.public().unwrap()],
            &Format::ALL
        )
        .is_ok()
    );
}

#[test]
fn our_own_signatures_hold_and_one_good_one_among_bad_ones_suffices() {
    let (key, digest) = (other_key(), Digest::of(b"x"));
    let bundle = Candidate::Bundle(sign_bundle(digest, &key).unwrap().into());
    let repository = Repository::parse("reg.example/a").unwrap();
    let (payload, signature) = sign_simple(&repository, digest, &key).unwrap();
    let simple = Candidate::Simple {
        payload: payload.into(),
        signature,
        annotations: Annotations::default(),
    };
    let broken = Candidate::Unreadable {
        format: Format::Bundle,
        why: "gone".to_owned(),
    };
    let public = [key.public().unwrap()];
    for good in [bundle, simple] {
        let all = [
            broken.clone(),
            cosign_bundle(),
            Candidate::Bundle(Bytes::from_static(b"{")),
            good,
        ];
        assert!(verify(&digest, &all, &public, &Format::ALL).is_ok());
        assert!(verify(&digest, &all[..3], &public, &Format::ALL).is_err());
    }
}
