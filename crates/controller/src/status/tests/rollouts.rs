//! Custom resources that a revision broke, and what is not enforced.

use orkestra_language::reasons::Reason;
use orkestra_plan::ObjectKey;

use super::*;
use orkestra_operator::rollout::Rollout;

/// An operator whose revision broke so many of nine custom resources, and has not reached others.
fn broken(count: usize, pending: usize) -> OperatorStatus {
    let key = |number: usize| ObjectKey {
        namespace: Some("east".into()),
        name: number.to_string().into(),
    };
    OperatorStatus {
        ready: 9 - count - pending,
        rollout: Rollout {
            proven: 9,
            pending,
            broken: [(Reason::Invalid, count)].into(),
            named: (0..count).map(key).collect(),
            example: Some("east/0: no quantity".to_owned()),
            limit: 10,
        },
        ..running(9)
    }
}

fn condition<'a>(status: &'a KatalogStatus, kind: &str) -> Option<&'a Condition> {
    status.conditions.iter().find(|one| one.type_ == kind)
}

fn of(operator: OperatorStatus) -> KatalogStatus {
    status(&Verdict::Accepted, &[operator], &[])
}

#[test]
fn a_revision_that_breaks_too_many_stalls_the_katalog_with_share_and_reason() {
    let status = of(broken(9, 0));
    let ready = condition(&status, READY).unwrap();
    assert_eq!(ready.status, ConditionStatus::False);
    assert_eq!(ready.reason, "InstancesFailing");
    assert!(condition(&status, STALLED).is_some() && condition(&status, RECONCILING).is_none());
    let failing = condition(&status, INSTANCES_FAILING).unwrap();
    assert_eq!(failing.reason, "Invalid");
    let said = "9 of 9 custom resources that were ready under an earlier revision fail (Invalid): east/0: no quantity";
    assert!(failing.message.ends_with(said), "{}", failing.message);
    assert_eq!(status.instances_ready, "0/9");
    let row = &status.operators[0];
    assert_eq!(
        (&*row.state, &*row.reason),
        ("Degraded", "InstancesFailing")
    );
    let failing = row.failing.as_ref().unwrap();
    assert_eq!(
        (failing.count, failing.of, &*failing.reason),
        (9, 9, "Invalid")
    );
    assert_eq!(failing.names[0], "east/0");
}

#[test]
fn a_few_are_reported_and_the_katalog_is_ready() {
    let mut few = broken(1, 0);
    few.rollout.proven = 10;
    let status = of(few);
    assert_eq!(
        condition(&status, READY).unwrap().status,
        ConditionStatus::True
    );
    assert!(condition(&status, INSTANCES_FAILING).is_some());
    assert_eq!(status.operators[0].state, "Running");
    assert!(condition(&of(broken(0, 0)), INSTANCES_FAILING).is_none());
}

#[test]
fn a_katalog_is_reconciling_until_each_resource_had_a_pass_under_the_revision() {
    let status = of(broken(0, 4));
    let ready = condition(&status, READY).unwrap();
    assert_eq!(
        (ready.status, &*ready.reason),
        (ConditionStatus::False, "Progressing")
    );
    assert!(
        ready.message.contains("5 of 9 custom resources"),
        "{}",
        ready.message
    );
    assert!(condition(&status, RECONCILING).is_some());
    assert_eq!(status.operators[0].state, "Updating");
    // The count alone is not written at once.
    assert_eq!(urgency(&status, &of(broken(0, 3))), Urgency::Counts);
    assert_eq!(urgency(&status, &of(broken(0, 0))), Urgency::Prompt);
    assert_eq!(
        urgency(&of(broken(9, 0)), &of(broken(8, 0))),
        Urgency::Counts
    );
}

#[test]
fn what_is_not_enforced_makes_the_katalog_not_ready() {
    let inputs = StatusInputs {
        generation: Some(3),
        verdict: &Verdict::Accepted,
        revision: Some("k-1"),
        operators: &[],
        disabled: &[],
        stopped: &[],
        operated: &[],
        releasing: &BTreeMap::new(),
        suspended: false,
        sources: &[],
        source_problem: None,
        unenforced: &["a policy is not in place: forbidden".to_owned()],
        enforces: Enforces::default(),
        waits: None,
        deletion_problem: None,
    };
    let status = compute(&inputs, &KatalogStatus::default(), now());
    let ready = condition(&status, READY).unwrap();
    assert_eq!(
        (ready.status, &*ready.reason),
        (ConditionStatus::False, "NotEnforced")
    );
    assert!(condition(&status, NOT_ENFORCED).is_some());
    assert!(condition(&status, RECONCILING).is_some());
}

#[test]
fn a_row_says_where_its_rules_apply_as_far_as_they_are_enforced() {
    let text = "
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: one }
spec:
  security: { webhooks: { admission: { enabled: true } }, deletionProtection: {} }
  crds:
    it:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      validation:
        rules:
          - { field: spec.tier, notEquals: deep, message: too deep }
          - { field: spec.kept, immutable: true }
";
    let reference = orkestra_plan::KatalogRef::new("shop".to_owned(), "one".to_owned());
    let plan = orkestra_testkit::compiled_as(&reference, text);
    let wanted = Revised {
        plan: plan.operators[0].clone(),
        revision: "k-0000000000".into(),
    };
    let mut plans = Plans::new(wanted.clone());
    plans.run(wanted.clone());
    let status = OperatorStatus {
        plans: Some(plans),
        ..running(1)
    };
    let places = |webhooks: bool, policies: bool, conflict: bool| {
        let operating = Operating {
            wanted: &wanted,
            status: status.clone(),
            conflict,
        };
        let places = operating.rules(Enforces { webhooks, policies });
        places.map(|places| [places.policy, places.webhook, places.passes, places.nowhere])
    };
    let list =
        |rules: &[&str]| -> Vec<String> { rules.iter().map(|one| (*one).to_owned()).collect() };
    let (tier, kept) = ("validation of spec.tier", "validation of spec.kept");
    let protection = list(&["protection against deletion"]);
    let all = places(true, true, false).unwrap();
    assert_eq!(
        all,
        [
            protection.clone(),
            list(&[tier, kept]),
            list(&[]),
            list(&[])
        ]
    );
    // Without the webhook, passes apply what they can.
    let some = places(false, true, false).unwrap();
    assert_eq!(some, [protection, list(&[]), list(&[tier]), list(&[kept])]);
    // Another Katalog has the kind.
    assert_eq!(places(true, true, true), None);
}
