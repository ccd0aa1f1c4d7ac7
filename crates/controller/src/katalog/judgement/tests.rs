//! The candidate revision of a Katalog after each verdict.

use serde_json::json;

use super::{super::judge::tests::judge, *};

/// Returns a revision with this hash; all revisions have the same plan.
fn revision(hash: &str) -> RunnableRevision {
    let types =
        json!({ "group": "water.example", "version": "v1", "kind": "Pond", "plural": "ponds" });
    let document = json!({
        "apiVersion": "orkestra.orkspace.io/v1", "kind": "Katalog",
        "metadata": { "name": "waters", "namespace": "shop" },
        "spec": { "crds": { "pond": { "apiTypes": types } } },
    });
    RunnableRevision {
        hash: hash.to_owned(),
        ..judge(&document, |_| None).unwrap()
    }
}

fn running(hash: &str) -> Running {
    Running {
        revision: "waters-1".into(),
        runs: revision(hash),
    }
}

/// Returns the verdict, and the hash of the candidate.
fn state(judgement: &Judgement) -> (&Verdict, Option<&str>) {
    let candidate = judgement.candidate().map(|candidate| &*candidate.hash);
    (judgement.verdict(), candidate)
}

#[test]
fn a_revision_is_a_candidate_unless_it_runs_or_is_refused() {
    let mut judgement = Judgement::pending();
    let pending = Verdict::Pending(None);
    judgement.note_good(revision("a"), None);
    assert_eq!(state(&judgement), (&pending, Some("a")));
    judgement.note_good(revision("b"), Some(&running("a")));
    assert_eq!(state(&judgement), (&pending, Some("b")));
    judgement.note_good(revision("b"), Some(&running("b")));
    assert_eq!(state(&judgement), (&Verdict::Accepted, None));
    judgement.note_good(revision("c"), Some(&running("b")));
    judgement.refuse(Refusal {
        reason: KatalogReason::InvalidRevision,
        message: String::new(),
    });
    assert!(judgement.is_refused() && judgement.candidate().is_none());
}

#[test]
fn only_an_accepted_revision_becomes_the_candidate_again() {
    let mut judgement = Judgement::pending();
    let pending = Verdict::Pending(None);
    judgement.reopen(running("a"));
    assert_eq!(state(&judgement), (&pending, None));
    judgement.note_accepted();
    judgement.reopen(running("a"));
    assert_eq!(state(&judgement), (&pending, Some("a")));
    // A waiting candidate is newer than the running revision, so it stays.
    judgement.reopen(running("b"));
    assert_eq!(state(&judgement), (&pending, Some("a")));
}
