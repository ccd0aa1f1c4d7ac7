//! The conditions that follow from a failure, and from a child that is not ready.

use orkestra_engine::reconcile::{
    kstatus::Readiness,
    reason::Reason,
    status::status,
    template_data::TemplateData,
    verdict::{Action, Done, Executed},
};

use super::{at, failed, plain, report, types};
use crate::pass::{operator::open_crd_status, world::key};

fn after(executed: &mut Executed) -> Vec<String> {
    types(&report(&mut plain(), &open_crd_status(), executed, 0))
}

#[test]
fn a_permanent_failure_stalls_and_a_transient_one_reconciles() {
    for reason in [
        Reason::TemplateFailed,
        Reason::BudgetExhausted,
        Reason::WrongType,
        Reason::InvalidName,
        Reason::DuplicateChild,
        Reason::Invalid,
        Reason::NameTaken,
    ] {
        let name = reason.as_str();
        assert_eq!(
            after(&mut failed(reason)),
            [
                format!("Ready=False {name}"),
                format!("Stalled=True {name}")
            ]
        );
    }
    for reason in [
        Reason::Forbidden,
        Reason::Denied,
        Reason::KindNotServed,
        Reason::Unavailable,
        Reason::WriteConflict,
        Reason::Panicked,
    ] {
        let name = reason.as_str();
        assert_eq!(
            after(&mut failed(reason)),
            [
                format!("Ready=False {name}"),
                format!("Reconciling=True {name}")
            ]
        );
    }
}

#[test]
fn one_transient_failure_among_permanent_ones_keeps_it_going() {
    let mut executed = failed(Reason::InvalidName);
    executed.failures.extend(failed(Reason::Forbidden).failures);
    assert_eq!(
        after(&mut executed),
        ["Ready=False Forbidden", "Reconciling=True Forbidden"]
    );
}

fn with_readiness(readiness: Readiness) -> Vec<String> {
    let mut world = plain();
    world.settle();
    let mut observed = world.observe();
    let record = world.record_of(&key("ConfigMap", "a"));
    let record = record.with_readiness(readiness);
    observed.children[0].record = record.into();
    let mut executed = Executed {
        done: vec![Done {
            key: key("ConfigMap", "a"),
            action: Action::Unchanged,
        }],
        ..Executed::default()
    };
    let patch = status(
        &world.plan,
        &open_crd_status(),
        &observed,
        &TemplateData::default(),
        &mut executed,
        at(0),
    )
    .unwrap();
    types(&patch.body.to_json()["status"])
}

#[test]
fn a_child_that_is_not_there_yet_is_awaited_and_one_that_failed_stalls() {
    assert_eq!(
        with_readiness(Readiness::Current),
        ["Ready=True ReconcileSucceeded"]
    );
    assert_eq!(
        with_readiness(Readiness::InProgress("1 of 2".into())),
        [
            "Ready=False ChildrenNotReady",
            "Reconciling=True ChildrenNotReady"
        ]
    );
    assert_eq!(
        with_readiness(Readiness::Failed("crash".into())),
        ["Ready=False ChildFailed", "Stalled=True ChildFailed"]
    );
}
