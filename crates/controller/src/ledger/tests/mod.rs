//! The order in which operators are started, changed and stopped.

mod claimed;

use super::{
    super::{
        katalog::kinds_of,
        testing::{katalog, plan, plan_in_order, plan_with_workers},
    },
    *,
};

const POND: (&str, &str, &str) = ("pond", "v1", "Pond");
const LAKE: (&str, &str, &str) = ("lake", "v1", "Lake");

fn wanted(age: usize, plan: &Arc<Plan>) -> WantedKatalog {
    WantedKatalog {
        uid: age.to_string(),
        seniority: Seniority::Given(age),
        recorded: kinds_of(plan),
        operated: BTreeSet::new(),
        leftovers: BTreeSet::new(),
        claims: kinds_of(plan),
        plan: Some(Arc::clone(plan)),
        revision: "r-1".into(),
        storage: BTreeMap::new(),
        stored: true,
        suspended: false,
    }
}

/// Returns lines like `start shop/a/pond`, `stop …`, `change …`, `start … yielding to …`.
fn settle(ledger: &mut Ledger) -> Vec<String> {
    let name = |key: &SlotKey| format!("{}/{}", key.0.name, key.1);
    let effects = ledger.settle();
    let lines = effects.iter().map(|effect| match effect {
        Effect::Stop(key) => format!("stop {}", name(key)),
        Effect::Reconfigure(key, _) => format!("change {}", name(key)),
        Effect::Start(key, _, Role::Reconciles) => format!("start {}", name(key)),
        Effect::Start(key, _, Role::Yields(to)) => format!("start {} yielding to {to}", name(key)),
    });
    lines.collect()
}

fn stopped(ledger: &mut Ledger, name: &str, entry: &str) {
    ledger.stopped(&(katalog(name), entry.to_owned()));
}

fn kind(name: &str) -> GroupKind {
    GroupKind {
        group: "water.example".into(),
        kind: name.into(),
    }
}

#[test]
fn nothing_happens_twice() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND, LAKE])));
    assert_eq!(settle(&mut ledger), ["start a/lake", "start a/pond"]);
    assert_eq!(settle(&mut ledger), [""; 0]);
}

#[test]
fn a_new_plan_touches_only_the_operators_it_changes() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND, LAKE])));
    settle(&mut ledger);
    let before = ledger.plan(&katalog("a")).unwrap().operators[1].clone();
    let pond = plan("a", &[POND]);
    let mut next = Plan {
        katalog: katalog("a"),
        operators: pond.operators.clone(),
        stopped: Vec::new(),
        deletion_policy: pond.deletion_policy,
        security: pond.security.clone(),
        conversions: pond.conversions.clone(),
        definitions: Box::default(),
    };
    next.operators
        .insert(0, plan_with_workers("a", &[LAKE], 7).operators[0].clone());
    ledger.want(katalog("a"), wanted(0, &Arc::new(next)));
    assert_eq!(settle(&mut ledger), ["change a/lake"]);
    assert!(Arc::ptr_eq(
        &before,
        &ledger.plan(&katalog("a")).unwrap().operators[1]
    ));
}

#[test]
fn operators_stop_after_those_that_depend_on_them() {
    let shop = plan_in_order(
        "a",
        &[
            ("web", &["api", "db"]),
            ("api", &["db"]),
            ("db", &[]),
            ("log", &[]),
        ],
    );
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &shop));
    settle(&mut ledger);
    ledger.close();
    assert_eq!(settle(&mut ledger), ["stop a/log", "stop a/web"]);
    stopped(&mut ledger, "a", "log");
    assert_eq!(settle(&mut ledger), [""; 0]);
    stopped(&mut ledger, "a", "web");
    assert_eq!(settle(&mut ledger), ["stop a/api"]);
    stopped(&mut ledger, "a", "api");
    assert_eq!(settle(&mut ledger), ["stop a/db"]);
    stopped(&mut ledger, "a", "db");
    assert!(ledger.is_idle());
}

#[test]
fn in_a_hurry_everything_stops_at_once() {
    let shop = plan_in_order("a", &[("web", &["db"]), ("db", &[])]);
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &shop));
    settle(&mut ledger);
    ledger.close();
    assert_eq!(settle(&mut ledger), ["stop a/web"]);
    ledger.hurry();
    assert_eq!(settle(&mut ledger), ["stop a/db"]);
}

#[test]
fn an_operator_stops_at_once_when_what_depends_on_it_continues() {
    let mut ledger = Ledger::default();
    ledger.want(
        katalog("a"),
        wanted(0, &plan_in_order("a", &[("web", &["db"]), ("db", &[])])),
    );
    settle(&mut ledger);
    ledger.want(
        katalog("a"),
        wanted(0, &plan_in_order("a", &[("web", &[])])),
    );
    assert_eq!(settle(&mut ledger), ["stop a/db", "change a/web"]);
}

#[test]
fn a_kind_that_gets_another_operator_waits_until_the_first_has_stopped() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND])));
    settle(&mut ledger);
    ledger.want(
        katalog("a"),
        wanted(0, &plan("a", &[("puddle", "v1", "Pond")])),
    );
    assert_eq!(settle(&mut ledger), ["stop a/pond"]);
    assert_eq!(settle(&mut ledger), [""; 0]);
    stopped(&mut ledger, "a", "pond");
    assert_eq!(settle(&mut ledger), ["start a/puddle"]);
}

#[test]
fn an_entry_that_gets_another_kind_waits_for_its_own_stop() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND])));
    settle(&mut ledger);
    ledger.want(
        katalog("a"),
        wanted(0, &plan("a", &[("pond", "v1", "Lake")])),
    );
    assert_eq!(settle(&mut ledger), ["stop a/pond"]);
    stopped(&mut ledger, "a", "pond");
    assert_eq!(settle(&mut ledger), ["start a/pond"]);
}

#[test]
fn the_older_katalog_has_the_kind_and_the_younger_takes_over_when_it_goes() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("b"), wanted(1, &plan("b", &[POND, LAKE])));
    ledger.want(katalog("c"), wanted(0, &plan("c", &[POND])));
    assert_eq!(settle(&mut ledger), ["start b/lake", "start c/pond"]);
    let decisions: Vec<_> = ledger
        .decisions()
        .into_iter()
        .map(|(wanted, decision)| {
            let plan = wanted.plan;
            (plan.katalog.name.clone(), plan.name.clone(), decision)
        })
        .collect();
    assert!(decisions.contains(&(
        "b".to_owned(),
        "pond".to_owned(),
        Decision::Conflict(katalog("c"))
    )));
    ledger.forget(&katalog("c"));
    assert_eq!(settle(&mut ledger), ["stop c/pond"]);
    stopped(&mut ledger, "c", "pond");
    assert_eq!(settle(&mut ledger), ["start b/pond"]);
}

#[test]
fn an_older_katalog_that_comes_later_takes_the_kind_after_the_younger_stopped() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("b"), wanted(1, &plan("b", &[POND])));
    settle(&mut ledger);
    ledger.want(katalog("c"), wanted(0, &plan("c", &[POND])));
    assert_eq!(settle(&mut ledger), ["stop b/pond"]);
    stopped(&mut ledger, "b", "pond");
    assert_eq!(settle(&mut ledger), ["start c/pond"]);
}

#[test]
fn a_claim_without_a_plan_keeps_a_younger_katalog_from_starting() {
    let mut ledger = Ledger::default();
    ledger.want(
        katalog("old"),
        WantedKatalog {
            plan: None,
            ..wanted(0, &plan("old", &[POND]))
        },
    );
    ledger.want(katalog("young"), wanted(1, &plan("young", &[POND])));
    assert_eq!(settle(&mut ledger), [""; 0]);
}

#[test]
fn of_several_versions_the_highest_reconciles_unless_another_is_stored() {
    let versions = [
        ("beta", "v2beta1", "Pond"),
        ("one", "v1", "Pond"),
        ("two", "v2", "Pond"),
    ];
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &versions)));
    assert_eq!(
        settle(&mut ledger),
        [
            "start a/beta yielding to two",
            "start a/one yielding to two",
            "start a/two"
        ]
    );
    let storage = [(kind("Pond"), "v1".to_owned())].into_iter().collect();
    ledger.want(
        katalog("a"),
        WantedKatalog {
            storage,
            ..wanted(0, &plan("a", &versions))
        },
    );
    assert_eq!(
        settle(&mut ledger),
        ["stop a/beta", "stop a/one", "stop a/two"]
    );
    stopped(&mut ledger, "a", "one");
    assert_eq!(
        settle(&mut ledger),
        [""; 0],
        "started before the others stopped"
    );
    stopped(&mut ledger, "a", "beta");
    stopped(&mut ledger, "a", "two");
    assert_eq!(
        settle(&mut ledger),
        [
            "start a/beta yielding to one",
            "start a/one",
            "start a/two yielding to one"
        ]
    );
}

#[test]
fn after_the_close_everything_stops_and_nothing_starts() {
    let mut ledger = Ledger::default();
    ledger.want(katalog("a"), wanted(0, &plan("a", &[POND])));
    settle(&mut ledger);
    ledger.close();
    ledger.want(katalog("b"), wanted(1, &plan("b", &[LAKE])));
    assert_eq!(settle(&mut ledger), ["stop a/pond"]);
    assert!(!ledger.is_idle());
    stopped(&mut ledger, "a", "pond");
    assert!(ledger.is_idle());
}

/// The same operators run in the end for every order in which Katalogs are created and operators stop, and two operators never
/// reconcile a kind at the same time.
#[test]
fn the_order_of_events_does_not_change_the_end() {
    let katalogs = [
        ("a", 2, vec![POND, LAKE]),
        ("b", 0, vec![POND]),
        ("c", 1, vec![LAKE, ("old", "v1beta1", "Lake")]),
    ];
    let mut ends = BTreeSet::new();
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        for late_stops in [false, true] {
            ends.insert(play(&katalogs, order, late_stops));
        }
    }
    assert_eq!(ends.len(), 1);
    assert_eq!(ends.pop_first().unwrap(), ["b/pond", "c/lake", "c/old"]);
}

/// A Katalog: name, age and entries.
type Declared = (
    &'static str,
    usize,
    Vec<(&'static str, &'static str, &'static str)>,
);

fn play(katalogs: &[Declared], order: [usize; 3], late_stops: bool) -> Vec<String> {
    let (mut ledger, mut stops) = (Ledger::default(), Vec::new());
    for at in order {
        let (name, age, entries) = &katalogs[at];
        ledger.want(katalog(name), wanted(*age, &plan(name, entries)));
        step(&mut ledger, &mut stops);
        if !late_stops {
            finish(&mut ledger, &mut stops);
        }
    }
    finish(&mut ledger, &mut stops);
    ledger
        .unfinished()
        .map(|(katalog, entry)| format!("{}/{entry}", katalog.name))
        .collect()
}

fn step(ledger: &mut Ledger, stops: &mut Vec<SlotKey>) {
    for effect in ledger.settle() {
        if let Effect::Stop(key) = effect {
            stops.push(key);
        }
    }
    let reconciling: Vec<_> = ledger
        .slots
        .values()
        .filter(|slot| slot.role == Role::Reconciles)
        .map(Slot::kind)
        .collect();
    let distinct: BTreeSet<_> = reconciling.iter().collect();
    assert_eq!(distinct.len(), reconciling.len(), "two for the same kind");
}

fn finish(ledger: &mut Ledger, stops: &mut Vec<SlotKey>) {
    while let Some(key) = stops.pop() {
        ledger.stopped(&key);
        step(ledger, stops);
    }
}

#[test]
fn a_new_revision_is_named_to_operators_that_it_leaves_as_they_were() {
    let mut ledger = Ledger::default();
    let both = plan("a", &[POND, LAKE]);
    ledger.want(katalog("a"), wanted(0, &both));
    settle(&mut ledger);
    let mut next = wanted(0, &plan("a", &[POND, LAKE]));
    next.revision = "r-2".into();
    ledger.want(katalog("a"), next.clone());
    let effects = ledger.settle();
    for (effect, plan) in effects.iter().zip(&both.operators) {
        let Effect::Reconfigure(_, revised) = effect else {
            panic!("{effect:?}");
        };
        assert_eq!(&*revised.revision, "r-2");
        assert!(Arc::ptr_eq(&revised.plan, plan), "not the wanted plan");
    }
    assert_eq!(effects.len(), 2);
    ledger.want(katalog("a"), next);
    assert!(settle(&mut ledger).is_empty());
}
