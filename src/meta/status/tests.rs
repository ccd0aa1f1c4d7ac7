//! The status of a Katalog.

#[path = "../../../crates/core/tests/kstatus/mod.rs"]
mod kstatus;

use orkestra_core::plan::{Plans, Revised};

use self::kstatus::{Kstatus, faults};
use super::{super::testing::operator, *};
use crate::runtime::{OperatorStatus, Problem, health::Degraded};

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

fn revised(name: &str) -> Revised {
    Revised {
        plan: operator("Pond"),
        revision: name.into(),
    }
}

/// Returns the status of an operator that runs `k-0000000000`, while the wanted plan has these pending problems.
fn lagging(pending: &[(KatalogReason, &str)]) -> OperatorStatus {
    lagging_with(pending, "k-0000000000")
}

fn lagging_with(pending: &[(KatalogReason, &str)], revision: &str) -> OperatorStatus {
    let mut plans = Plans::new(revised(revision));
    plans.run(revised(revision));
    let problem = |(reason, message): &(KatalogReason, &str)| Problem {
        reason: *reason,
        message: (*message).to_owned(),
    };
    OperatorStatus {
        plans: Some(plans),
        pending: pending.iter().map(problem).collect(),
        ..running(2)
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

/// Returns the status of a Katalog with these operators.
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
    let wanted = revised("k-1234567890");
    let conflict = |status: &OperatorStatus| {
        status
            .problems
            .iter()
            .any(|problem| problem.reason == KatalogReason::Conflict)
    };
    let operators: Vec<_> = operators
        .iter()
        .map(|status| {
            let mut plans = Plans::new(wanted.clone());
            if status.phase == Phase::Running {
                plans.run(wanted.clone());
            }
            if let Some(running) = status.plans.as_ref().and_then(Plans::running) {
                plans.run(running.clone());
            }
            Operating {
                wanted: &wanted,
                status: OperatorStatus {
                    plans: Some(plans),
                    ..status.clone()
                },
                conflict: conflict(status),
            }
        })
        .collect();
    let kind = |plural: &str| OperatedKind {
        group: "water.example".into(),
        kind: "Pond".into(),
        plural: plural.into(),
        version: "v1".into(),
        ..OperatedKind::default()
    };
    let releasing = releasing
        .iter()
        .map(|(plural, problem)| {
            let problem = problem.map(str::to_owned);
            (
                kind(plural),
                Releasing {
                    problem,
                    left: None,
                },
            )
        })
        .collect();
    let facts = Facts {
        generation: Some(3),
        verdict,
        revision: Some("k-1234567890"),
        operators: &operators,
        disabled: &["off".to_owned()],
        stopped: &[],
        operated: &[kind("ponds")],
        releasing: &releasing,
        suspended: operators.iter().any(|one| one.status.suspended),
        sources: &[],
        source_problem: None,
        waits: None,
        trouble: None,
    };
    compute(&facts, written, now())
}

/// Formats `Ready=False/Waiting, Reconciling=True/Waiting`.
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
    // It disappears with its cause.
    let well = status_over(&told, &Verdict::Accepted, &[running(2), running(4)], &[]);
    assert_eq!(conditions(&well), "Ready=True/Running");
    // An operator that does not run at all has another problem.
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
        "releasing ponds.water.example: cannot list; remove the cause, or annotate the Katalog with \
         orkestra.orkspace.io/release=true to delete it without that"
    );
}

#[test]
fn a_deletion_that_waits_names_its_way_out() {
    let facts = Facts {
        generation: Some(3),
        verdict: &Verdict::Deleted,
        revision: None,
        operators: &[],
        stopped: &[],
        disabled: &[],
        operated: &[],
        releasing: &BTreeMap::new(),
        suspended: false,
        sources: &[],
        source_problem: None,
        waits: Some("waiting for the deletion of 2 Pond.water.example"),
        trouble: None,
    };
    assert_eq!(
        super::terminating_message(&facts),
        "waiting for the deletion of 2 Pond.water.example; annotate the Katalog with \
         orkestra.orkspace.io/release=true to delete it without waiting"
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

/// G3: over every transition between the situations of a Katalog.
#[test]
fn the_conditions_keep_to_kstatus_over_every_transition() {
    let refused = Verdict::Refused {
        reason: KatalogReason::NoApiTypes,
        message: "no".to_owned(),
    };
    let verdicts = [
        Verdict::Accepted,
        Verdict::Pending(None),
        Verdict::Pending(Some("no".into())),
        refused.clone(),
        Verdict::Deleted,
    ];
    let forbidden = (KatalogReason::Forbidden, "cannot list secrets");
    let starting = OperatorStatus {
        phase: Phase::Starting,
        ..OperatorStatus::default()
    };
    let operators = [
        vec![],
        vec![running(1)],
        vec![starting],
        vec![waiting(KatalogReason::CrdMissing)],
        vec![waiting(KatalogReason::Conflict)],
        vec![lagging(&[])],
        vec![running(1), lagging(&[forbidden])],
    ];
    let releasing: [&[(&str, Option<&str>)]; 3] =
        [&[], &[("ponds", None)], &[("ponds", Some("no"))]];
    let mut all = Vec::new();
    for verdict in &verdicts {
        for operators in &operators {
            all.extend(releasing.map(|releasing| (verdict, operators, releasing)));
        }
    }
    for before in &all {
        let written = status(before.0, before.1, before.2);
        for after in &all {
            let status = status_over(&written, after.0, after.1, after.2);
            let again = status_over(&status, after.0, after.1, after.2);
            assert_eq!(urgency(&status, &again), Urgency::None, "a second look");
            let object = json!({ "metadata": { "generation": 3 }, "status": status });
            assert_eq!(faults(&object), [""; 0], "{object}");
            let runs = *after.1 == vec![running(1)] || after.1.is_empty();
            let expected = match after.0 {
                Verdict::Refused { .. } => Kstatus::Failed,
                Verdict::Accepted if runs && after.2.is_empty() => Kstatus::Current,
                _ => Kstatus::InProgress,
            };
            assert_eq!(kstatus::kstatus(&object), expected, "{object}");
            // The same status never describes the next generation.
            let next = json!({ "metadata": { "generation": 4 }, "status": status });
            assert_eq!(kstatus::kstatus(&next), Kstatus::InProgress);
        }
    }
}

#[test]
fn a_revision_that_waits_for_a_permission_is_not_ready_and_both_revisions_are_shown() {
    let message = "secrets is forbidden: cannot list resource \"secrets\"";
    let before = status(&Verdict::Accepted, &[running(1)], &[]);
    let lag = lagging(&[(KatalogReason::Forbidden, message)]);
    let told = status_over(&before, &Verdict::Accepted, &[running(1), lag], &[]);
    assert_eq!(
        conditions(&told),
        "Ready=False/Forbidden, Reconciling=True/Forbidden"
    );
    assert!(told.conditions[0].message.contains(message));
    assert_eq!(told.ready, "1/2");
    assert_eq!(told.revision.as_deref(), Some("k-0000000000"));
    assert_eq!(told.wanted_revision.as_deref(), Some("k-1234567890"));
    let [current, lagging] = [&told.operators[0], &told.operators[1]];
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
    // Once it runs, no trace of the earlier one is left.
    let done = status_over(&told, &Verdict::Accepted, &[running(1), running(1)], &[]);
    assert_eq!(conditions(&done), "Ready=True/Running");
    assert_eq!(done.revision.as_deref(), Some("k-1234567890"));
    assert_eq!(done.wanted_revision, None);
    assert_eq!(patch(&done, None)["status"]["wantedRevision"], Value::Null);
}

#[test]
fn a_revision_that_only_fills_its_caches_is_progressing_and_a_missing_kind_is_waited_for() {
    let of = |pending: &[(KatalogReason, &str)]| {
        let told = status(&Verdict::Accepted, &[lagging(pending)], &[]);
        (conditions(&told), told.operators[0].reason.clone())
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
    // Its last report is about the previous plan, which was healthy.
    let told = status(&Verdict::Accepted, &[lagging(&[])], &[]);
    assert_eq!(told.ready, "0/1");
    let written = KatalogStatus {
        observed_generation: Some(2),
        ..status(&Verdict::Accepted, &[running(2)], &[])
    };
    assert!(is_rollout(&written, &told));
    let forbidden = [(KatalogReason::Forbidden, "no")];
    let told = status(&Verdict::Accepted, &[lagging(&forbidden)], &[]);
    assert!(!is_rollout(&written, &told));
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
    let ending = status_over(&written, &Verdict::Deleted, &[], &[]);
    assert_eq!(urgency(&written, &ending), Urgency::Prompt);
    let mut later = ending.clone();
    later.conditions[0].message = "1 of 2 left".to_owned();
    assert_eq!(urgency(&ending, &later), Urgency::Counts);
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
