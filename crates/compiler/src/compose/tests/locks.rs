//! Locks of nested compositions: they add to those around them, and take nothing away.

use std::sync::Arc;

use super::*;

const OUTER: &str = "oci://r.example/outer:v1#komposer";
const INNER: &str = "oci://r.example/inner:v1";

/// The digest that every artifact of these tests has.
fn digest() -> String {
    format!("sha256:{}", "ab".repeat(32))
}

/// Merges a Komposer with `rest` around one with `nested`, which has one source.
fn result(rest: &str, nested: &str, beside: Option<Lock>) -> Result<Merged, String> {
    let outer = "  registry: [{ url: 'r.example/outer:v1', useKomposer: true }]";
    let inner = komposer("  registry: [{ url: 'r.example/inner:v1' }]", nested);
    let file = |id: &str, name: &str, text: &str| {
        let documents = vec![Fetched {
            name: name.to_owned(),
            text: text.to_owned(),
        }];
        (id.to_owned(), Arc::new(artifact(id, documents)))
    };
    let artifacts: Artifacts = [
        file(OUTER, "komposer.yaml", &inner.replace("waters", "nested")),
        file(INNER, "katalog.yaml", POND),
    ]
    .into();
    let (mut composition, _) = composition(&komposer(outer, rest)).unwrap();
    composition.beside = beside;
    merge(&composition, &artifacts).map_err(|problems| problems.to_string())
}

fn lock(digest: &str) -> Lock {
    Lock::of_digests(&[(INNER.to_owned(), digest.to_owned())].into())
}

#[test]
fn a_nested_composition_that_requires_a_lock_gets_one() {
    let required = "spec: { lock: required }";
    assert!(matches!(result("", required, None), Ok(Merged::NeedLock)));
    let problems = result("", required, Some(Lock::default())).unwrap_err();
    assert!(problems.contains("is not locked"), "{problems}");
    let other = format!("sha256:{}", "cd".repeat(32));
    let problems = result("", required, Some(lock(&other))).unwrap_err();
    assert!(problems.contains("is locked"), "{problems}");
    let found = result("", required, Some(lock(&digest())));
    assert!(matches!(found, Ok(Merged::Done(..))), "{found:?}");
    let own = format!(
        "spec: {{ lock: required, locked: {{ '{INNER}': '{}' }} }}",
        digest()
    );
    let found = result("", &own, Some(Lock::default()));
    assert!(matches!(found, Ok(Merged::Done(..))), "{found:?}");
}

#[test]
fn a_digest_that_a_nested_composition_locks_is_compared() {
    let other = format!("sha256:{}", "cd".repeat(32));
    let nested = format!("spec: {{ locked: {{ '{INNER}': '{other}' }} }}");
    let problems = result("", &nested, None).unwrap_err();
    assert!(problems.contains("is locked"), "{problems}");
    assert!(problems.contains("komposer.yaml"), "{problems}");
}

#[test]
fn a_nested_composition_cannot_permit_what_one_around_it_refuses() {
    let rest = format!(
        "spec: {{ lock: required, locked: {{ '{OUTER}': '{}' }} }}",
        digest()
    );
    let nested = format!("spec: {{ locked: {{ '{INNER}': '{}' }} }}", digest());
    let problems = result(&rest, &nested, None).unwrap_err();
    assert!(problems.contains("is not locked"), "{problems}");
    let other = format!("sha256:{}", "cd".repeat(32));
    let rest = format!("spec: {{ locked: {{ '{INNER}': '{other}' }} }}");
    let problems = result(&rest, &nested, None).unwrap_err();
    assert!(problems.contains("is locked"), "{problems}");
}
