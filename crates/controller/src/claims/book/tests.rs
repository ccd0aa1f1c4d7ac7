//! Claims on kinds: their holders, and the writes that claim, renew, take over and release them.

use orkestra_plan::KatalogRef;

use super::*;

const EAST: &str = "east/orkestra";
const WEST: &str = "west/orkestra";

fn at(minutes: i64) -> Timestamp {
    let start: Timestamp = "2026-03-01T10:00:00Z".parse().unwrap();
    start + SignedDuration::from_mins(minutes)
}

fn pond() -> GroupKind {
    GroupKind::parse("Pond.water.example")
}

fn claimant(name: &str) -> Claimant {
    Claimant {
        katalog: KatalogRef::new("shop".to_owned(), name.to_owned()),
        uid: format!("uid of {name}"),
    }
}

fn state(version: &str) -> ObjectVersion {
    ObjectVersion {
        uid: "u".to_owned(),
        version: version.to_owned(),
    }
}

fn claim(installation: &str, name: &str, version: &str) -> (String, LeaseContent) {
    let claim = Claim {
        installation: installation.to_owned(),
        claimant: claimant(name),
        state: state(version),
    };
    (lease_of(&pond()), LeaseContent::Claim(claim))
}

fn alive(installation: &str, renewed: Option<Timestamp>) -> (String, LeaseContent) {
    let heartbeat = Heartbeat {
        installation: installation.to_owned(),
        renewed,
        state: state("9"),
    };
    (
        names::installation_lease(installation),
        LeaseContent::Heartbeat(heartbeat),
    )
}

fn need(name: &str) -> ClaimRequest {
    ClaimRequest {
        kinds: BTreeMap::from([(pond(), claimant(name))]),
        complete: true,
    }
}

/// Returns the claims of installation East, which needs the kind; `records` are listed at minute 0.
fn book(records: Vec<(String, LeaseContent)>) -> ClaimTable {
    let mut book = ClaimTable::new(EAST.into());
    book.need(need("a"));
    book.replace(records, at(0));
    book.look_at_clock(at(0));
    book
}

/// Executes the due actions as if the API server accepted them.
fn write(book: &mut ClaimTable, now: Timestamp) -> Vec<Action> {
    let actions = book.actions(now);
    for action in actions.clone() {
        let (name, record) = match action {
            Action::Renew(_) => alive(EAST, Some(now)),
            Action::Claim(name, claimant, _) | Action::TakeOver(name, claimant, ..) => {
                let claim = Claim {
                    installation: EAST.to_owned(),
                    claimant,
                    state: state("new"),
                };
                (name, LeaseContent::Claim(claim))
            }
            Action::Drop(name, _) => {
                book.remove(&name);
                continue;
            }
        };
        book.note_written(name, record, now);
    }
    actions
}

/// Returns the action that takes the kind over from `installation`, whose last known heartbeat is `last`.
fn taken_from(installation: &str, last: Option<(String, LeaseContent)>) -> Action {
    let last = last.map(|(_, content)| match content {
        LeaseContent::Heartbeat(heartbeat) => heartbeat,
        LeaseContent::Claim(_) => unreachable!(),
    });
    let lease = names::installation_lease(installation);
    let gone = Gone { lease, last };
    Action::TakeOver(lease_of(&pond()), claimant("a"), state("1"), gone)
}

fn standing(book: &ClaimTable, now: Timestamp) -> Option<ClaimState> {
    book.standings(now).of(&pond()).cloned()
}

#[test]
fn nothing_is_written_before_the_claims_are_known() {
    let mut book = ClaimTable::new(EAST.into());
    book.need(need("a"));
    assert_eq!(book.actions(at(0)), []);
    assert!(!book.standings(at(0)).listed);
}

#[test]
fn a_free_kind_is_claimed_after_the_installation_has_shown_that_it_is_alive() {
    let mut book = book(vec![]);
    assert_eq!(write(&mut book, at(0)), [Action::Renew(None)]);
    assert_eq!(standing(&book, at(0)), None);
    let taken = Action::Claim(lease_of(&pond()), claimant("a"), None);
    assert_eq!(write(&mut book, at(0)), [taken]);
    assert_eq!(
        standing(&book, at(0)),
        Some(ClaimState::Ours(claimant("a")))
    );
    assert_eq!(book.actions(at(4)), [], "a write before renewal is due");
    assert_eq!(book.next(at(4)), Some(at(5)));
    assert_eq!(write(&mut book, at(5)), [Action::Renew(Some(state("9")))]);
    assert_eq!(book.actions(at(6)), []);
}

#[test]
fn a_restart_writes_nothing() {
    let mut book = book(vec![claim(EAST, "a", "1"), alive(EAST, Some(at(-1)))]);
    assert_eq!(
        standing(&book, at(0)),
        Some(ClaimState::Ours(claimant("a")))
    );
    assert_eq!(write(&mut book, at(0)), []);
}

#[test]
fn a_claim_goes_to_another_katalog_of_the_installation() {
    let mut book = book(vec![claim(EAST, "b", "1"), alive(EAST, Some(at(-1)))]);
    assert_eq!(
        standing(&book, at(0)),
        Some(ClaimState::Ours(claimant("b")))
    );
    let moved = Action::Claim(lease_of(&pond()), claimant("a"), Some(state("1")));
    assert_eq!(write(&mut book, at(0)), [moved]);
    assert_eq!(
        standing(&book, at(0)),
        Some(ClaimState::Ours(claimant("a")))
    );
}

#[test]
fn the_claim_of_an_installation_that_is_alive_is_left_alone() {
    let mut book = book(vec![claim(WEST, "b", "1"), alive(WEST, Some(at(-14)))]);
    write(&mut book, at(0));
    assert_eq!(book.actions(at(0)), []);
    let holder = Holder {
        installation: WEST.to_owned(),
        claimant: claimant("b"),
    };
    assert_eq!(standing(&book, at(0)), Some(ClaimState::Foreign(holder)));
    // The time in the heartbeat is ignored: the clock of either installation may be wrong.
    write(&mut book, at(5));
    write(&mut book, at(10));
    assert_eq!(book.next(at(14)), Some(at(15)), "the time of expiry");
    let taken = taken_from(WEST, Some(alive(WEST, Some(at(-14)))));
    assert!(write(&mut book, at(15)).contains(&taken));
    assert_eq!(
        standing(&book, at(15)),
        Some(ClaimState::Ours(claimant("a")))
    );
}

#[test]
fn a_clock_that_is_set_forward_takes_no_claim() {
    let mut book = book(vec![claim(WEST, "b", "1"), alive(WEST, Some(at(0)))]);
    write(&mut book, at(0));
    // The clock was set forward by an hour, or the process was suspended: it observed no heartbeats in that hour.
    book.look_at_clock(at(60));
    write(&mut book, at(60));
    let is_foreign = |book: &ClaimTable, now| {
        let standing = standing(book, now);
        matches!(standing, Some(ClaimState::Foreign(_)))
    };
    assert!(is_foreign(&book, at(74)));
    // The other installation renews its Lease with a time that is long past by this clock.
    let (name, renewed) = alive(WEST, Some(at(5)));
    book.take_in(name, renewed, at(74));
    assert!(is_foreign(&book, at(88)));
    assert!(!is_foreign(&book, at(89)));
}

#[test]
fn an_installation_that_is_long_gone_keeps_nothing() {
    let long_ago = at(-24 * 60);
    let mut book = book(vec![claim(WEST, "b", "1"), alive(WEST, Some(long_ago))]);
    write(&mut book, at(0));
    let taken = taken_from(WEST, Some(alive(WEST, Some(long_ago))));
    assert_eq!(write(&mut book, at(0)), [taken]);
}

#[test]
fn a_forged_claim_expires() {
    // A claim of an installation that does not exist, of none, or of one without a renewal time expires immediately.
    let forged = [
        (
            vec![claim("nobody/there", "b", "1")],
            taken_from("nobody/there", None),
        ),
        (vec![claim("", "b", "1")], taken_from("", None)),
        (
            vec![claim(WEST, "b", "1"), alive(WEST, None)],
            taken_from(WEST, Some(alive(WEST, None))),
        ),
    ];
    for (records, taken) in forged {
        let mut book = book(records);
        write(&mut book, at(0));
        assert_eq!(write(&mut book, at(0)), [taken]);
    }
    // A renewal time in the future has no effect: the claim expires when the heartbeat has not changed for the usual time.
    let mut book = book(vec![
        claim(WEST, "b", "1"),
        alive(WEST, Some(Timestamp::MAX)),
    ]);
    write(&mut book, at(0));
    assert_eq!(book.actions(at(0)), []);
    write(&mut book, at(5));
    write(&mut book, at(10));
    write(&mut book, at(14));
    let taken = taken_from(WEST, Some(alive(WEST, Some(Timestamp::MAX))));
    assert!(write(&mut book, at(16)).contains(&taken));
}

#[test]
fn a_lease_that_changes_without_a_renewal_expires_all_the_same() {
    let mut book = book(vec![claim(WEST, "b", "1"), alive(WEST, Some(at(0)))]);
    for minute in [0, 5, 10, 14] {
        write(&mut book, at(minute));
        let (name, mut annotated) = alive(WEST, Some(at(0)));
        if let LeaseContent::Heartbeat(heartbeat) = &mut annotated {
            heartbeat.state = state(&format!("1{minute}"));
        }
        book.take_in(name, annotated, at(minute));
    }
    let is_taken = |action: &Action| matches!(action, Action::TakeOver(..));
    assert!(book.actions(at(15)).iter().any(is_taken));
}

#[test]
fn an_installation_is_gone_if_its_lease_is_not_renewed_since() {
    let beat = |renewed| alive(WEST, renewed).1;
    let Action::TakeOver(.., gone) = taken_from(WEST, Some(alive(WEST, Some(at(0))))) else {
        panic!()
    };
    assert!(gone.is_confirmed_by(None));
    assert!(gone.is_confirmed_by(Some(&beat(Some(at(0))))));
    assert!(!gone.is_confirmed_by(Some(&beat(Some(at(5))))));
    let Action::TakeOver(.., unseen) = taken_from(WEST, None) else {
        panic!()
    };
    assert!(unseen.is_confirmed_by(None));
    assert!(!unseen.is_confirmed_by(Some(&beat(Some(at(0))))));
}

#[test]
fn one_that_could_not_renew_relies_on_its_claims_no_more_until_it_has_written_them_again() {
    let mut book = book(vec![claim(EAST, "a", "1"), alive(EAST, Some(at(0)))]);
    assert!(standing(&book, at(13)).is_some());
    // The process was suspended for an hour.
    book.look_at_clock(at(60));
    assert_eq!(standing(&book, at(60)), None);
    assert_eq!(write(&mut book, at(60)), [Action::Renew(Some(state("9")))]);
    assert_eq!(standing(&book, at(60)), None, "the claim may be lost");
    let (name, old) = claim(EAST, "a", "1");
    book.take_in(name, old, at(60));
    assert_eq!(standing(&book, at(60)), None, "the event is outdated");
    let again = Action::Claim(lease_of(&pond()), claimant("a"), Some(state("1")));
    assert_eq!(write(&mut book, at(60)), [again]);
    assert!(standing(&book, at(60)).is_some());
}

#[test]
fn what_is_not_needed_is_dropped_once_all_that_is_needed_is_known() {
    let mut book = book(vec![claim(EAST, "a", "1"), alive(EAST, Some(at(0)))]);
    book.need(ClaimRequest::default());
    assert_eq!(book.actions(at(0)), []);
    book.need(ClaimRequest {
        complete: true,
        ..ClaimRequest::default()
    });
    let dropped = Action::Drop(lease_of(&pond()), state("1"));
    assert_eq!(write(&mut book, at(0)), [dropped]);
    assert_eq!(standing(&book, at(0)), None);
    assert_eq!(book.actions(at(9)), [], "a renewal without claims");
}

#[test]
fn a_claim_that_cannot_be_written_says_why_and_is_tried_again_ever_more_slowly() {
    let mut book = book(vec![alive(EAST, Some(at(0)))]);
    let problem = OperatorProblem {
        reason: orkestra_language::reasons::KatalogReason::Forbidden,
        message: "no".to_owned(),
    };
    let mut now = at(0);
    let mut waits = Vec::new();
    for _ in 0..8 {
        assert_eq!(book.actions(now).len(), 1);
        book.note_failure(&lease_of(&pond()), problem.clone(), now);
        assert_eq!(book.actions(now), []);
        let next = book.next(now).unwrap();
        waits.push(next.duration_since(now).as_secs());
        now = next;
    }
    assert_eq!(waits, [0, 1, 2, 4, 8, 16, 30, 30]);
    assert_eq!(standing(&book, now), Some(ClaimState::Refused(problem)));
}

#[test]
fn the_end_drops_everything_of_this_installation_and_nothing_else() {
    let mut book = book(vec![claim(EAST, "a", "1"), alive(EAST, Some(at(0)))]);
    assert_eq!(
        book.farewell(),
        [
            Action::Drop(lease_of(&pond()), state("1")),
            Action::Drop(names::installation_lease(EAST), state("9")),
        ]
    );
    let (name, other) = claim(WEST, "b", "2");
    book.take_in(name, other, at(0));
    assert_eq!(book.farewell().len(), 1);
    book.need(ClaimRequest::default());
    assert_eq!(book.farewell(), [], "the needs are unknown");
}
