//! The reported revisions while operators do not run the newest one yet.

use super::*;

#[test]
fn a_revision_that_waits_for_a_permission_is_not_ready_and_both_revisions_are_shown() {
    let message = "secrets is forbidden: cannot list resource \"secrets\"";
    let before = status(&Verdict::Accepted, &[running(1)], &[]);
    let lag = lagging(&[(KatalogReason::Forbidden, message)]);
    let reported = status_over(&before, &Verdict::Accepted, &[running(1), lag], &[]);
    assert_eq!(
        conditions(&reported),
        "Ready=False/Forbidden, Reconciling=True/Forbidden"
    );
    assert!(reported.conditions[0].message.contains(message));
    assert_eq!(reported.ready, "1/2");
    assert_eq!(reported.revision.as_deref(), Some("k-0000000000"));
    assert_eq!(reported.wanted_revision.as_deref(), Some("k-1234567890"));
    let [current, lagging] = [&reported.operators[0], &reported.operators[1]];
    assert_eq!(
        (current.state.as_str(), current.revision.as_deref()),
        ("Running", Some("k-1234567890"))
    );
    assert_eq!(current.wanted_revision, None);
    assert_eq!(
        (
            lagging.state.as_str(),
            lagging.reason.as_str(),
            lagging.revision.as_deref(),
            lagging.wanted_revision.as_deref()
        ),
        (
            "Updating",
            "Forbidden",
            Some("k-0000000000"),
            Some("k-1234567890")
        )
    );
    assert_eq!(
        lagging.message,
        format!("revision k-1234567890 waits: {message}; until then revision k-0000000000 runs")
    );
    // Once the new revision runs, the status does not mention the earlier one.
    let done = status_over(
        &reported,
        &Verdict::Accepted,
        &[running(1), running(1)],
        &[],
    );
    assert_eq!(conditions(&done), "Ready=True/Running");
    assert_eq!(done.revision.as_deref(), Some("k-1234567890"));
    assert_eq!(done.wanted_revision, None);
    assert_eq!(patch(&done, None)["status"]["wantedRevision"], Value::Null);
}

#[test]
fn a_revision_that_only_fills_its_caches_is_progressing_and_a_missing_kind_is_waited_for() {
    let of = |pending: &[(KatalogReason, &str)]| {
        let reported = status(&Verdict::Accepted, &[lagging(pending)], &[]);
        (conditions(&reported), reported.operators[0].reason.clone())
    };
    let progressing = "Ready=False/Progressing, Reconciling=True/Progressing";
    assert_eq!(of(&[]), (progressing.to_owned(), "Progressing".to_owned()));
    let waiting = "Ready=False/Waiting, Reconciling=True/Waiting";
    assert_eq!(
        of(&[(KatalogReason::KindNotServed, "no Well")]),
        (waiting.to_owned(), "KindNotServed".to_owned())
    );
}

#[test]
fn the_revision_in_force_is_the_one_that_was_reported_while_an_operator_runs_it() {
    let in_force = |written: &str, revisions: &[&str]| {
        let written = KatalogStatus {
            revision: Some(written.to_owned()),
            ..KatalogStatus::default()
        };
        let operators: Vec<_> = (revisions.iter())
            .map(|revision| lagging_with(&[], revision))
            .collect();
        status_over(&written, &Verdict::Accepted, &operators, &[]).revision
    };
    assert_eq!(in_force("k-1", &["k-2", "k-1"]).as_deref(), Some("k-1"));
    assert_eq!(in_force("k-1", &["k-2", "k-2"]).as_deref(), Some("k-2"));
    assert_eq!(
        in_force("k-1", &["k-1234567890"]).as_deref(),
        Some("k-1234567890")
    );
}

#[test]
fn an_operator_that_has_not_yet_heard_of_the_wanted_plan_does_not_run_it() {
    // The last status of the operator is about the previous plan, which had no problem.
    let reported = status(&Verdict::Accepted, &[lagging(&[])], &[]);
    assert_eq!(reported.ready, "0/1");
    let written = KatalogStatus {
        observed_generation: Some(2),
        ..status(&Verdict::Accepted, &[running(2)], &[])
    };
    assert!(is_rollout(&written, &reported));
    let forbidden = [(KatalogReason::Forbidden, "no")];
    let reported = status(&Verdict::Accepted, &[lagging(&forbidden)], &[]);
    assert!(!is_rollout(&written, &reported));
}
