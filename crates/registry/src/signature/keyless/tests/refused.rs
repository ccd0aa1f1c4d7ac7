//! Signatures that fail a check, and the message of each.

use super::{
    both, judge,
    world::{Knobs, SIGNED_AT, SUBJECT, Spoilt, World, now},
};
use crate::Digest;

// Over 60 lines: a table of faults and the messages of the refusals.
#[test]
#[allow(clippy::too_many_lines)]
fn each_failed_check_is_reported_with_what_was_expected() {
    let world = World::new();
    let good = Knobs::default;
    let cases: Vec<(Knobs, &str)> = vec![
        (
            Knobs {
                other_authority: true,
                ..good()
            },
            "no certificate authority of the trusted root",
        ),
        (
            Knobs {
                time: SIGNED_AT + 864_000,
                ..good()
            },
            "its certificate expired at 2026-06-16T00:00:00Z, before the time of the signature",
        ),
        (
            Knobs {
                time: SIGNED_AT - 864_000,
                ..good()
            },
            "its certificate is valid from 2026-06-15T00:00:00Z, after the time",
        ),
        (Knobs { time: -1, ..good() }, "before 1970"),
        (
            Knobs { time: 1, ..good() },
            "the key of the log was not valid at the time",
        ),
        (
            Knobs {
                subject: "eve@harbour.example",
                ..good()
            },
            "is of `eve@harbour.example`, expected `ada@harbour.example`",
        ),
        (
            Knobs {
                subject: "ada@harbour.example.evil.example",
                ..good()
            },
            "expected `ada@harbour.example`",
        ),
        (
            Knobs {
                subject: "",
                ..good()
            },
            "names no e-mail address or URI",
        ),
        (
            Knobs {
                issuer: Some("https://evil.example"),
                ..good()
            },
            "has the issuer `https://evil.example`, expected `https://accounts.example`",
        ),
        (
            Knobs {
                raw_issuer: Some("https://evil.example"),
                ..good()
            },
            "has the issuer `https://evil.example`",
        ),
        (
            Knobs {
                issuer: None,
                ..good()
            },
            "names no issuer of an identity, expected `https://accounts.example`",
        ),
        (
            Knobs {
                is_for_code: false,
                ..good()
            },
            "is not for code signing",
        ),
        (
            Knobs {
                intermediates: 3,
                ..good()
            },
            "more than 4",
        ),
        (
            Knobs {
                other_key: true,
                ..good()
            },
            "the key of its certificate did not sign it",
        ),
        (
            Knobs {
                spoilt: Spoilt::NoEntry,
                ..good()
            },
            "it has no entry of a transparency log, and the trusted root requires one",
        ),
        (
            Knobs {
                spoilt: Spoilt::OtherLogKey,
                ..good()
            },
            "the log did not sign the timestamp",
        ),
        (
            Knobs {
                spoilt: Spoilt::UnknownLog,
                ..good()
            },
            "which the trusted root does not have",
        ),
        (
            Knobs {
                spoilt: Spoilt::OtherSignature,
                ..good()
            },
            "is about another signature",
        ),
        (
            Knobs {
                spoilt: Spoilt::OtherDigest,
                ..good()
            },
            "is about the digest sha256:",
        ),
        (
            Knobs {
                spoilt: Spoilt::OtherCertificate,
                ..good()
            },
            "is about another certificate",
        ),
        (
            Knobs {
                spoilt: Spoilt::OtherKind,
                ..good()
            },
            "is a `rfc3161 0.0.1`, expected",
        ),
        (
            Knobs {
                digest: Digest::of(b"other"),
                ..good()
            },
            "it is the signature of sha256:",
        ),
    ];
    for (knobs, expected) in cases {
        for candidate in both(&world, &knobs) {
            let format = candidate.format();
            let said = judge(candidate, &world.identity(SUBJECT), now()).unwrap_err();
            assert!(
                said.contains(expected),
                "{format:?}: {said}\nexpected: {expected}"
            );
        }
    }
}
