//! The status of a Katalog: conditions, operators, releases and revisions.

#[path = "../../../../engine/tests/kstatus/mod.rs"]
mod kstatus;
mod problems;
mod revisions;
mod rollouts;
mod transitions;

use orkestra_plan::{Plans, Revised};

use super::{super::testing::operator, *};
use orkestra_operator::{OperatorProblem, OperatorStatus};

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

/// Returns the status of an operator that runs revision `k-0000000000`, while the wanted plan has these pending problems.
fn lagging(pending: &[(KatalogReason, &str)]) -> OperatorStatus {
    lagging_with(pending, "k-0000000000")
}

fn lagging_with(pending: &[(KatalogReason, &str)], revision: &str) -> OperatorStatus {
    let mut plans = Plans::new(revised(revision));
    plans.run(revised(revision));
    let problem = |(reason, message): &(KatalogReason, &str)| OperatorProblem {
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
    let problems = vec![OperatorProblem {
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
    let operators: Vec<_> = operators
        .iter()
        .map(|status| operating(&wanted, status))
        .collect();
    let releasing = releases(releasing);
    let inputs = StatusInputs {
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
        unenforced: &[],
        enforces: Enforces::default(),
        waits: None,
        deletion_problem: None,
    };
    compute(&inputs, written, now())
}

/// Returns the operator with this status. If it is running, its plan is the one in the status, or else the wanted one.
fn operating<'a>(wanted: &'a Revised, status: &OperatorStatus) -> Operating<'a> {
    let mut plans = Plans::new(wanted.clone());
    if status.phase == Phase::Running {
        plans.run(wanted.clone());
    }
    if let Some(running) = status.plans.as_ref().and_then(Plans::running) {
        plans.run(running.clone());
    }
    Operating {
        wanted,
        status: OperatorStatus {
            plans: Some(plans),
            ..status.clone()
        },
        conflict: status
            .problems
            .iter()
            .any(|problem| problem.reason == KatalogReason::Conflict),
    }
}

/// Returns the entry for the kind `plural` in a Katalog's status.
fn kind(plural: &str) -> OperatedKind {
    OperatedKind {
        group: "water.example".into(),
        kind: "Pond".into(),
        plural: plural.into(),
        version: "v1".into(),
        ..OperatedKind::default()
    }
}

/// Returns the progress of releases, given by the plural of each kind and the problem that prevents its release.
fn releases(releasing: &[(&str, Option<&str>)]) -> BTreeMap<OperatedKind, Releasing> {
    let release = |(plural, problem): &(&str, Option<&str>)| {
        let problem = problem.map(str::to_owned);
        (
            kind(plural),
            Releasing {
                problem,
                left: None,
            },
        )
    };
    releasing.iter().map(release).collect()
}

/// Formats the conditions as in `Ready=False/Waiting, Reconciling=True/Waiting`.
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
fn a_katalog_in_deletion_says_what_it_releases() {
    let status = status(&Verdict::Deleted, &[], &[("ponds", Some("cannot list"))]);
    assert_eq!(
        conditions(&status),
        "Ready=False/Terminating, Reconciling=True/Terminating"
    );
    assert_eq!(
        status.conditions[0].message,
        "releasing ponds.water.example: cannot list; fix the cause, or annotate the Katalog with \
         orkestra.orkspace.io/release=true to delete it anyway"
    );
}

#[test]
fn a_deletion_that_waits_names_its_way_out() {
    let inputs = StatusInputs {
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
        unenforced: &[],
        enforces: Enforces::default(),
        waits: Some("waiting for the deletion of 2 Pond.water.example"),
        deletion_problem: None,
    };
    assert_eq!(
        super::terminating_message(&inputs),
        "waiting for the deletion of 2 Pond.water.example; annotate the Katalog with \
         orkestra.orkspace.io/release=true to delete it without waiting"
    );
}

#[test]
fn a_kind_that_is_released_is_work_and_a_failure_says_so() {
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
