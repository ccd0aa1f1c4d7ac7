//! Problems of operators, and their effect on the conditions of the Katalog.

use super::*;
use orkestra_operator::health::Degraded;

#[test]
fn a_degraded_operator_is_reported_and_its_katalog_still_runs() {
    let degraded = |message: &str| OperatorStatus {
        degraded: Some(Degraded {
            since: now(),
            message: message.to_owned(),
        }),
        ..running(4)
    };
    let before = status(&Verdict::Accepted, &[running(2), running(4)], &[]);
    let reported = status_over(
        &before,
        &Verdict::Accepted,
        &[running(2), degraded("5 passes in a row failed")],
        &[],
    );
    assert_eq!(
        conditions(&reported),
        "Ready=True/Running, Degraded=True/PassesFail"
    );
    assert_eq!(
        reported.conditions[1].message,
        "it: 5 passes in a row failed"
    );
    let row = &reported.operators[1];
    assert_eq!(
        (
            row.state.as_str(),
            row.reason.as_str(),
            row.message.as_str()
        ),
        ("Degraded", "PassesFail", "5 passes in a row failed")
    );
    assert_eq!(urgency(&before, &reported), Urgency::Prompt);
    // The condition is removed when the operator recovers.
    let well = status_over(
        &reported,
        &Verdict::Accepted,
        &[running(2), running(4)],
        &[],
    );
    assert_eq!(conditions(&well), "Ready=True/Running");
    // An operator that does not run is reported as waiting, not as degraded.
    let gone = OperatorStatus {
        degraded: degraded("5 passes in a row failed").degraded,
        ..waiting(KatalogReason::CrdMissing)
    };
    let reported = status(&Verdict::Accepted, &[gone], &[]);
    assert_eq!(
        conditions(&reported),
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
fn a_missing_permission_names_the_whole_even_beside_others() {
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
fn a_permission_that_is_lost_while_it_runs_is_grave_and_a_status_that_cannot_be_written_is_not() {
    let with = |reason| {
        let problems = vec![OperatorProblem {
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
