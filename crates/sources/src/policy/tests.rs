//! Policies of sources: what they match, and what they refuse to compare.

use orkestra_registry::signature::PrivateKey;

use super::*;

fn policy(rules: &[(&str, &str)]) -> Policy {
    let key = PrivateKey::from_pem(&PrivateKey::generate().unwrap(), b"").unwrap();
    let pem = key.public().unwrap().pem().replace('\n', "\n    ");
    let rules = rules.iter().map(|(place, mode)| {
        format!("- match: \"{place}\"\n  mode: {mode}\n  keys:\n  - |\n    {pem}\n")
    });
    Policy::parse(&format!("rules:\n{}", rules.collect::<String>())).unwrap()
}

#[test]
fn the_longest_match_decides_and_ends_at_a_part_of_the_path() {
    let policy = policy(&[("ghcr.io", "warn"), ("ghcr.io/acme/", "enforce")]);
    let warns = |place: &str| policy.of(place).map(|trust| trust.warns);
    assert_eq!(warns("ghcr.io/acme/ponds"), Some(false));
    assert_eq!(warns("GHCR.io/acme"), Some(false));
    assert_eq!(warns("ghcr.io/acmeevil/ponds"), Some(true));
    assert_eq!(warns("ghcr.io.evil.example/acme"), None);
    assert_eq!(warns("ghcr.io:443/acme/ponds"), Some(false));
    assert_eq!(warns("ghcr.io./acme/ponds"), Some(false));
    assert_eq!(warns("ghcr.io:444/acme/ponds"), None);
    let of_url = policy.of_url("https://ghcr.io/acme/x.yaml?token=1");
    assert!(
        of_url
            .unwrap()
            .is_some_and(|trust| trust.unsigned("x").is_err())
    );
}

#[test]
fn an_address_is_compared_in_the_form_in_which_it_is_requested() {
    let policy = policy(&[
        ("h.example", "warn"),
        ("h.example/acme", "enforce"),
        ("[::1]/acme", "enforce"),
    ]);
    for url in [
        "https://h.example/legacy/../acme/x",
        "https://h.example/./acme/x",
        "https://h.example//acme/x",
        "https://h.example/%61cme/x",
        "https://h.example/%2561cme/x",
        "https://h.example/legacy%2f..%2Facme",
        "https://h.example/legacy/..",
        "https://h.example/legacy\\..\\acme",
        "https://h.example/acme;v=1/x",
        "https://h.example/x/%2e%2e/acme",
        "https://h.example@other.example/acme",
        "https://h%2eexample/acme",
        "https://h.example/legacy/..;/acme",
    ] {
        let error = policy.of_url(url).map(drop).unwrap_err();
        assert!(error.is_permanent(), "{url}");
        let nothing = Policy::default();
        assert!(nothing.of_url(url).unwrap().is_none(), "{url}");
    }
    for url in [
        "https://h.example/acme",
        "https://H.Example/Acme/x",
        "https://h.example:443/acme/x",
        "https://h.example:0443/acme/x",
        "https://h.example./acme/x",
        "http://h.example:80/acme/x",
        "http://h.example/acme/x",
        "https://h.example/acme/",
        "https://h.example/acme.git",
        "https://h.example/acme.git/info",
        "https://h.example/acme?x=/../legacy",
        "https://h.example/acme#/../legacy",
        "https://[0:0:0:0:0:0:0:1]/acme",
        "https://[::1]:443/acme",
    ] {
        let found = policy.of_url(url).unwrap().map(|trust| trust.warns);
        assert_eq!(found, Some(false), "{url}");
    }
    let found = policy.of_url("https://h.example/acme.github").unwrap();
    assert_eq!(found.map(|trust| trust.warns), Some(true));
}

#[test]
fn a_star_is_for_every_place_without_a_rule_of_its_own() {
    let policy = policy(&[("*", "enforce"), ("docker.io", "warn")]);
    let warns = |place: &str| policy.of(place).map(|trust| trust.warns);
    assert_eq!(warns("ghcr.io/acme/ponds"), Some(false));
    assert_eq!(warns("registry-1.docker.io/acme"), Some(true));
}

#[test]
fn rules_without_keys_and_with_roots_that_cannot_be_used_are_refused() {
    for (text, why) in [
        ("rules: [{match: ghcr.io, keys: []}]", "no key is given"),
        ("rules: [{match: ghcr.io, keys: [x]}]", "key 1"),
        ("rules: [{match: ghcr.io, keyless: {}}]", "issuer"),
        (
            "rules: [{match: ghcr.io, keyless: {issuer: i, subject: s, trustedRoot: root.json}}]",
            "neither JSON nor certificates",
        ),
        (
            "rules: [{match: ghcr.io, keyless: {issuer: i, subject: s, trustedRoot: '{}'}}]",
            "mediaType",
        ),
        ("rules: [{match: ghcr.io, keyz: []}]", "keyz"),
        ("rules: [{match: ghcr.io, mode: maybe}]", "maybe"),
    ] {
        let error = Policy::parse(text).unwrap_err().to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}
