//! Claims on kinds: which Katalog holds a kind, may work on it, and releases it.

use super::*;

#[test]
fn of_katalogs_of_the_same_second_one_that_operates_the_kind_keeps_it() {
    let plan = plan("a", &[POND]);
    let kind = kinds_of(&plan).pop_first().unwrap();
    let created = |uid: &str, operated: bool| WantedKatalog {
        uid: uid.to_owned(),
        seniority: Seniority::Created(jiff::Timestamp::UNIX_EPOCH),
        operated: operated.then(|| kind.clone()).into_iter().collect(),
        ..wanted(0, &plan)
    };
    let first_holder = |first: WantedKatalog, second: WantedKatalog| {
        let all = BTreeMap::from([(katalog("first"), first), (katalog("second"), second)]);
        holder(&all, &kind).unwrap().name.clone()
    };
    assert_eq!(
        first_holder(created("9", true), created("1", false)),
        "first"
    );
    assert_eq!(
        first_holder(created("1", false), created("9", true)),
        "second"
    );
    assert_eq!(
        first_holder(created("9", false), created("1", false)),
        "second"
    );
    let older = WantedKatalog {
        seniority: Seniority::Created(jiff::Timestamp::MIN),
        ..created("9", false)
    };
    assert_eq!(first_holder(older, created("1", true)), "first");
}

/// Returns a claim of this installation for the Katalog `shop/<name>` with uid `0`.
fn ours(name: &str) -> ClaimState {
    ClaimState::Ours(Claimant {
        katalog: katalog(name),
        uid: "0".to_owned(),
    })
}

fn elsewhere(name: &str) -> ClaimState {
    ClaimState::Foreign(Holder {
        installation: "west/orkestra".to_owned(),
        claimant: Claimant {
            katalog: katalog(name),
            uid: "7".to_owned(),
        },
    })
}

fn stand(ledger: &mut Ledger, pond: ClaimState) {
    ledger.stand(Arc::new(Standings::of_test([(kind("Pond"), pond)])));
}

#[test]
fn a_kind_of_another_installation_is_not_run_and_not_released() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND])));
    assert_eq!(settle(&mut ledger), ["start a/pond"]);
    assert!(!ledger.may_work(&katalog("a"), &kind("Pond")), "no claim");
    stand(&mut ledger, ours("a"));
    assert!(ledger.may_work(&katalog("a"), &kind("Pond")));
    assert_eq!(ledger.held_by(&katalog("a")), [kind("Pond")].into());
    stand(&mut ledger, elsewhere("b"));
    assert_eq!(settle(&mut ledger), ["stop a/pond"]);
    assert!(!ledger.may_work(&katalog("a"), &kind("Pond")));
    stopped(&mut ledger, "a", "pond");
    assert_eq!(settle(&mut ledger), [""; 0]);
    ledger.forget(&katalog("a"));
    let holder = "shop/b of installation west/orkestra".to_owned();
    assert_eq!(
        ledger.hold(&kind("Pond"), "0"),
        ReleaseHold::Claimed(holder)
    );
}

#[test]
fn an_operator_works_only_on_a_kind_that_is_recorded_as_operated() {
    let mut ledger = Ledger::default();
    let plan = plan("a", &[POND]);
    stand(&mut ledger, ours("a"));
    let unrecorded = WantedKatalog {
        recorded: BTreeSet::new(),
        ..wanted(0, &plan)
    };
    ledger.want(katalog("a"), unrecorded);
    assert!(!ledger.may_work(&katalog("a"), &kind("Pond")));
    ledger.want(katalog("a"), wanted(0, &plan));
    assert!(ledger.may_work(&katalog("a"), &kind("Pond")));
}

#[test]
fn the_claim_on_a_kind_stays_until_it_is_released_and_goes_to_whoever_wants_it() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND, LAKE])));
    ledger.release(&katalog("a"), [kind("Pond"), kind("Lake")].into());
    let claimant = |ledger: &Ledger, name| {
        let demand = ledger.demand();
        demand.get(&kind(name)).map(|one| one.katalog.name.clone())
    };
    assert_eq!(claimant(&ledger, "Pond").as_deref(), Some("a"));
    ledger.want(katalog("b"), wanted(1, &plan("b", &[POND])));
    assert_eq!(claimant(&ledger, "Pond").as_deref(), Some("b"));
    assert_eq!(claimant(&ledger, "Lake").as_deref(), Some("a"));
    ledger.released(&katalog("a"), &kind("Lake"));
    assert_eq!(claimant(&ledger, "Lake"), None);
    assert_eq!(ledger.leftovers(&katalog("a")), [kind("Pond")].into());
}

#[test]
fn the_claim_of_a_katalog_that_is_gone_stays_until_its_operator_has_stopped() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND])));
    stand(&mut ledger, ours("a"));
    settle(&mut ledger);
    ledger.forget(&katalog("a"));
    settle(&mut ledger);
    let demand = ledger.demand();
    assert_eq!(demand[&kind("Pond")].katalog, katalog("a"));
    stopped(&mut ledger, "a", "pond");
    assert_eq!(ledger.demand(), BTreeMap::new());
}

#[test]
fn a_kind_is_released_only_when_nobody_wants_it_and_its_operator_is_gone() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND])));
    settle(&mut ledger);
    assert_eq!(
        ledger.hold(&kind("Pond"), "0"),
        ReleaseHold::Claimed("shop/a".to_owned())
    );
    ledger.forget(&katalog("a"));
    settle(&mut ledger);
    assert_eq!(ledger.hold(&kind("Pond"), "0"), ReleaseHold::Busy);
    stopped(&mut ledger, "a", "pond");
    assert_eq!(
        ledger.hold(&kind("Pond"), "0"),
        ReleaseHold::Unclaimed(None)
    );
    stand(&mut ledger, ours("a"));
    assert_eq!(
        ledger.hold(&kind("Pond"), "1"),
        ReleaseHold::Unclaimed(None),
        "the claim is of another Katalog"
    );
    assert_eq!(ledger.hold(&kind("Pond"), "0"), ReleaseHold::Held);
    ledger.want(katalog("b"), wanted(1, &plan("b", &[POND, LAKE])));
    assert_eq!(
        settle(&mut ledger),
        ["start b/lake"],
        "started during a release"
    );
    ledger.unhold(&kind("Pond"));
    assert_eq!(settle(&mut ledger), ["start b/pond"]);
}
