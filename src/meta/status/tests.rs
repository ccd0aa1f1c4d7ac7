//! What a Katalog's status says.

use super::{super::testing::operator, *};
use crate::runtime::Problem;

fn now() -> jiff::Timestamp {
    jiff::Timestamp::from_second(1_700_000_000).unwrap()
}

fn running(instances: usize) -> OperatorStatus {
    OperatorStatus {
        phase: Phase::Running,
        workers: 2,
        steady_workers: 2,
        instances,
        ready: instances,
        ..OperatorStatus::default()
    }
}

fn waiting(reason: KatalogReason) -> OperatorStatus {
    let problems = vec![Problem {
        reason,
        message: "it is not there".to_owned(),
    }];
    OperatorStatus {
        phase: Phase::Waiting,
        problems,
        ..OperatorStatus::default()
    }
}

/// The status of a Katalog with these operators.
fn status(
    verdict: &Verdict,
    operators: &[OperatorStatus],
    releasing: &[(&str, Option<&str>)],
) -> KatalogStatus {
    status_over(&KatalogStatus::default(), verdict, operators, releasing)
}

fn status_over(
    written: &KatalogStatus,
    verdict: &Verdict,
    operators: &[OperatorStatus],
    releasing: &[(&str, Option<&str>)],
) -> KatalogStatus {
    let plan = operator("Pond");
    let conflict = |status: &OperatorStatus| {
        status
            .problems
            .iter()
            .any(|problem| problem.reason == KatalogReason::Conflict)
    };
    let operators: Vec<_> = operators
        .iter()
        .map(|status| Operating {
            plan: &plan,
            status: status.clone(),
            conflict: conflict(status),
        })
        .collect();
    let kind = |plural: &str| OperatedKind {
        group: "water.example".into(),
        kind: "Pond".into(),
        plural: plural.into(),
        version: "v1".into(),
    };
    let releasing = releasing
        .iter()
        .map(|(plural, problem)| (kind(plural), problem.map(str::to_owned)))
        .collect();
    let facts = Facts {
        generation: Some(3),
        verdict,
        revision: Some("k-1234567890"),
        operators: &operators,
        disabled: &["off".to_owned()],
        operated: &[kind("ponds")],
        releasing: &releasing,
    };
    compute(&facts, written, now())
}

/// `Ready=False/Waiting, Reconciling=True/Waiting`.
fn conditions(status: &KatalogStatus) -> String {
    let lines = status.conditions.iter().map(|condition| {
        format!(
            "{}={}/{}",
            condition.type_, condition.status, condition.reason
        )
    });
    lines.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_katalog_is_ready_when_every_operator_runs() {
    let status = status(&Verdict::Accepted, &[running(2), running(3)], &[]);
    assert_eq!(conditions(&status), "Ready=True/Running");
    assert_eq!(
        (
            status.ready.as_str(),
            status.instances,
            status.observed_generation
        ),
        ("2/2", 5, Some(3))
    );
    assert_eq!(status.revision.as_deref(), Some("k-1234567890"));
    let rows: Vec<_> = status
        .operators
        .iter()
        .map(|row| (row.name.as_str(), row.state.as_str()))
        .collect();
    assert_eq!(
        rows,
        [("it", "Running"), ("it", "Running"), ("off", "Disabled")]
    );
}

#[test]
fn a_degraded_operator_is_told_of_and_its_katalog_still_runs() {
    let degraded = |message: &str| OperatorStatus {
        degraded: Some(Degraded {
            since: now(),
            message: message.to_owned(),
        }),
        ..running(4)
    };
    let before = status(&Verdict::Accepted, &[running(2), running(4)], &[]);
    let told = status_over(
        &before,
        &Verdict::Accepted,
        &[running(2), degraded("5 passes in a row failed")],
        &[],
    );
    assert_eq!(
        conditions(&told),
        "Ready=True/Running, Degraded=True/PassesFail"
    );
    assert_eq!(told.conditions[1].message, "it: 5 passes in a row failed");
    let row = &told.operators[1];
    assert_eq!(
        (
            row.state.as_str(),
            row.reason.as_str(),
            row.message.as_str()
        ),
        ("Degraded", "PassesFail", "5 passes in a row failed")
    );
    assert_eq!(urgency(&before, &told), Urgency::Prompt);
    // It goes with what it told of.
    let well = status_over(&told, &Verdict::Accepted, &[running(2), running(4)], &[]);
    assert_eq!(conditions(&well), "Ready=True/Running");
    // Who does not run at all has another trouble.
    let gone = OperatorStatus {
        degraded: degraded("5 passes in a row failed").degraded,
        ..waiting(KatalogReason::CrdMissing)
    };
    let told = status(&Verdict::Accepted, &[gone], &[]);
    assert_eq!(
        conditions(&told),
        "Ready=False/Waiting, Reconciling=True/Waiting"
    );
}

#[test]
fn a_missing_crd_is_waited_for() {
    let status = status(
        &Verdict::Accepted,
        &[running(1), waiting(KatalogReason::CrdMissing)],
        &[],
    );
    assert_eq!(
        conditions(&status),
        "Ready=False/Waiting, Reconciling=True/Waiting"
    );
    assert_eq!(status.ready, "1/2");
    assert_eq!(
        status.conditions[0].message,
        "it: CrdMissing: it is not there"
    );
    assert_eq!(
        (
            status.operators[1].state.as_str(),
            status.operators[1].reason.as_str()
        ),
        ("Waiting", "CrdMissing")
    );
}

#[test]
fn a_missing_right_names_the_whole_even_beside_others() {
    let status = status(
        &Verdict::Accepted,
        &[
            waiting(KatalogReason::CrdMissing),
            waiting(KatalogReason::Conflict),
            waiting(KatalogReason::Forbidden),
        ],
        &[],
    );
    assert_eq!(
        conditions(&status),
        "Ready=False/Forbidden, Reconciling=True/Forbidden"
    );
}

#[test]
fn a_right_that_is_lost_while_it_runs_is_grave_and_a_status_that_cannot_be_written_is_not() {
    let with = |reason| {
        let problems = vec![Problem {
            reason,
            message: "no".to_owned(),
        }];
        status(
            &Verdict::Accepted,
            &[OperatorStatus {
                problems,
                ..running(1)
            }],
            &[],
        )
    };
    assert_eq!(
        conditions(&with(KatalogReason::Forbidden)),
        "Ready=False/Forbidden, Reconciling=True/Forbidden"
    );
    let minor = with(KatalogReason::StatusNotWritable);
    assert_eq!(conditions(&minor), "Ready=True/Running");
    assert_eq!(
        (
            minor.operators[0].reason.as_str(),
            minor.operators[0].message.as_str()
        ),
        ("StatusNotWritable", "no")
    );
}

#[test]
fn a_refused_revision_is_stalled_while_the_last_good_one_runs() {
    let verdict = Verdict::Refused {
        reason: KatalogReason::InvalidRevision,
        message: "spec.crds: no".to_owned(),
    };
    let status = status(&verdict, &[running(1)], &[]);
    assert_eq!(
        conditions(&status),
        "Ready=False/InvalidRevision, Stalled=True/InvalidRevision"
    );
    assert_eq!(status.ready, "1/1");
    assert_eq!(status.conditions[0].message, "spec.crds: no");
}

#[test]
fn a_katalog_that_goes_says_what_it_lets_go_of() {
    let status = status(&Verdict::Deleted, &[], &[("ponds", Some("cannot list"))]);
    assert_eq!(
        conditions(&status),
        "Ready=False/Terminating, Reconciling=True/Terminating"
    );
    assert_eq!(
        status.conditions[0].message,
        "letting go of ponds.water.example: cannot list"
    );
}

#[test]
fn a_kind_that_is_let_go_is_work_and_a_failure_says_so() {
    let at_work = status(&Verdict::Accepted, &[running(1)], &[("ponds", None)]);
    assert_eq!(
        conditions(&at_work),
        "Ready=False/Releasing, Reconciling=True/Releasing"
    );
    let failed = status(&Verdict::Accepted, &[running(1)], &[("ponds", Some("no"))]);
    assert_eq!(
        conditions(&failed),
        "Ready=False/ReleaseFailed, Reconciling=True/ReleaseFailed"
    );
}

/// Source: kstatus; over every transition between a few situations.
#[test]
fn ready_is_always_there_and_never_both_others() {
    let refused = Verdict::Refused {
        reason: KatalogReason::NoApiTypes,
        message: "no".to_owned(),
    };
    let verdicts = [
        Verdict::Accepted,
        Verdict::Pending(None),
        Verdict::Pending(Some("no".into())),
        refused,
        Verdict::Deleted,
    ];
    let operators = [
        vec![],
        vec![running(1)],
        vec![waiting(KatalogReason::CrdMissing)],
        vec![waiting(KatalogReason::Conflict)],
    ];
    let all: Vec<_> = verdicts
        .iter()
        .flat_map(|verdict| operators.iter().map(move |operators| (verdict, operators)))
        .collect();
    for (before, after) in all
        .iter()
        .flat_map(|before| all.iter().map(move |after| (before, after)))
    {
        let written = status(before.0, before.1, &[]);
        let status = status_over(&written, after.0, after.1, &[]);
        let is = |kind: &str| {
            status
                .conditions
                .iter()
                .find(|condition| condition.type_ == kind)
                .map(|condition| condition.status)
        };
        assert!(is(READY).is_some());
        assert!(!(is(RECONCILING).is_some() && is(STALLED).is_some()));
        let busy = is(RECONCILING).is_some() || is(STALLED).is_some();
        assert_eq!(
            is(READY) == Some(ConditionStatus::True),
            !busy,
            "{}",
            conditions(&status)
        );
        assert_eq!(
            urgency(&status, &status_over(&status, after.0, after.1, &[])),
            Urgency::None,
            "a second look changes nothing"
        );
    }
}

#[test]
fn counts_wait_and_states_do_not() {
    let written = status(&Verdict::Accepted, &[running(1)], &[]);
    assert_eq!(
        urgency(
            &written,
            &status_over(&written, &Verdict::Accepted, &[running(2)], &[])
        ),
        Urgency::Counts
    );
    let lost = status_over(
        &written,
        &Verdict::Accepted,
        &[waiting(KatalogReason::CrdMissing)],
        &[],
    );
    assert_eq!(urgency(&written, &lost), Urgency::Prompt);
}

#[test]
fn conditions_of_others_stay() {
    let other = Condition::new("Audited", ConditionStatus::True, "ByHand", "");
    let written = KatalogStatus {
        conditions: vec![other.clone()],
        ..KatalogStatus::default()
    };
    assert!(
        status_over(&written, &Verdict::Accepted, &[running(1)], &[])
            .conditions
            .contains(&other)
    );
}

#[test]
fn the_patch_clears_what_is_empty() {
    let patch = patch(
        &KatalogStatus {
            ready: "0/0".to_owned(),
            ..KatalogStatus::default()
        },
        Some("7"),
    );
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    assert_eq!(patch["status"]["operators"], json!([]));
    assert_eq!(patch["status"]["revision"], Value::Null);
}
