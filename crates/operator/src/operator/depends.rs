//! `dependsOn`: while a dependency of an operator is not ready, the operator's queue is held.
//!
//! Nothing is lost: keys collect in the queue and are processed once it is released. Custom resources that are being deleted
//! are processed all the same; otherwise an uninstall in the wrong order would never end.

use std::collections::BTreeSet;

use orkestra_ground::changes::{change, first};
use orkestra_language::api::DependencyCondition;
use orkestra_plan::{DependencyPlan, KatalogRef, OperatorPlan, Plans};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    context::operators::Operators,
    shared::Shared,
    status::{OperatorStatus, Phase},
};

/// The live status of another operator.
type Status = watch::Receiver<OperatorStatus>;

/// Dependencies that have started once; kept when the task restarts.
pub(crate) type Started = BTreeSet<Box<str>>;

/// Holds and releases the operator's queue until `stop` is cancelled; pauses while the API server is unreachable.
pub(crate) async fn follow(
    shared: &Shared,
    plans: &mut watch::Receiver<Plans>,
    started: &mut Started,
    stop: &CancellationToken,
) {
    let operators = &shared.context.operators;
    let mut listed = operators.changed();
    let mut reach = shared.context.cluster.reach().view();
    loop {
        listed.mark_unchanged();
        shared.queue.pause(!reach.borrow_and_update().is_up);
        let plan = plans.borrow_and_update().effective().plan.clone();
        let mut watched = Vec::new();
        let waits_for = unmet(operators, &plan, started, &mut watched);
        shared.wait_for(waits_for);
        tokio::select! {
            () = stop.cancelled() => return,
            changed = plans.changed() => if changed.is_err() { return },
            _ = listed.changed() => {}
            _ = reach.changed() => shared.changed.notify_one(),
            // An operator that stops no longer updates its status; the list shows that it stopped.
            () = first(watched.iter_mut().map(change)) => {}
        }
    }
}

/// Describes the dependencies that are not ready; adds the statuses that may change this to `watched`.
fn unmet(
    operators: &Operators,
    plan: &OperatorPlan,
    started: &mut BTreeSet<Box<str>>,
    watched: &mut Vec<Status>,
) -> Option<String> {
    started.retain(|name| plan.depends_on.iter().any(|one| one.on == *name));
    let mut waits = Vec::new();
    for dependency in &plan.depends_on {
        let DependencyPlan { on, condition } = dependency;
        // Required once: an operator that has started may stop again.
        if *condition == DependencyCondition::Started && started.contains(on) {
            continue;
        }
        let wait = match find(operators, &plan.katalog, on, watched) {
            None => Some(format!("waiting for `{on}`, which is not running")),
            Some(status) => lacks(&status, *condition).map(|lacks| {
                let aim = match condition {
                    DependencyCondition::Started => "start",
                    DependencyCondition::Healthy => "be healthy",
                };
                format!("waits for `{on}` to {aim}: {lacks}")
            }),
        };
        match wait {
            Some(wait) => waits.push(wait),
            None => {
                started.insert(on.clone());
            }
        }
    }
    (!waits.is_empty()).then(|| waits.join("; "))
}

/// Returns the status of that entry's operator; if it yields its kind to another entry, it runs as well as that one.
fn find(
    operators: &Operators,
    katalog: &KatalogRef,
    name: &str,
    watched: &mut Vec<Status>,
) -> Option<OperatorStatus> {
    let mut look = |name: &str| {
        let mut status = operators.get(katalog, name)?.status();
        let now = status.borrow_and_update().clone();
        watched.push(status);
        Some(now)
    };
    let own = look(name)?;
    match &own.yields_to {
        Some(entry) => look(entry),
        None => Some(own),
    }
}

/// Returns why the condition is not met; none if it is met.
fn lacks(status: &OperatorStatus, condition: DependencyCondition) -> Option<String> {
    if status.phase != Phase::Running {
        let why = status.problems.first();
        let why = why.map(|problem| format!(": {}", problem.reason));
        return Some(format!("it is not running{}", why.unwrap_or_default()));
    }
    if condition == DependencyCondition::Started {
        return None;
    }
    if let Some(degraded) = &status.degraded {
        return Some(format!("it is degraded: {}", degraded.message));
    }
    let works = status.has_succeeded() || status.instances == 0;
    (!works).then(|| match &status.last_error {
        Some(error) => format!("none of its passes has succeeded yet: {error}"),
        None => "no pass of it has succeeded yet".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use orkestra_language::api::DependencyCondition::{Healthy, Started};

    use super::*;
    use crate::status::{OperatorProblem, health::Degraded};

    fn running() -> OperatorStatus {
        OperatorStatus {
            phase: Phase::Running,
            instances: 4,
            passes: 9,
            ..OperatorStatus::default()
        }
    }

    /// Returns the status of an operator whose last passes failed.
    fn degraded() -> OperatorStatus {
        OperatorStatus {
            degraded: Some(Degraded {
                since: jiff::Timestamp::UNIX_EPOCH,
                message: "5 passes in a row failed".to_owned(),
            }),
            ..running()
        }
    }

    /// Returns the status of an operator that waits for another operator.
    fn waiting() -> OperatorStatus {
        OperatorStatus {
            phase: Phase::Waiting,
            problems: vec![OperatorProblem {
                reason: orkestra_language::reasons::KatalogReason::DependencyNotReady,
                message: "waits for `lake`".to_owned(),
            }],
            ..running()
        }
    }

    #[test]
    fn started_asks_for_workers_and_healthy_for_a_success_and_that_it_is_not_degraded() {
        // An occasional failure does not block dependents.
        let failing = OperatorStatus {
            consecutive_failures: 4,
            failures: 4,
            last_error: Some("no right".to_owned()),
            ..running()
        };
        let fresh = OperatorStatus {
            passes: 0,
            ..running()
        };
        let hapless = OperatorStatus {
            failures: 9,
            ..failing.clone()
        };
        let idle = OperatorStatus {
            instances: 0,
            ..fresh.clone()
        };
        for (status, condition, expected) in [
            (running(), Started, None),
            (running(), Healthy, None),
            (degraded(), Started, None),
            (
                degraded(),
                Healthy,
                Some("it is degraded: 5 passes in a row failed"),
            ),
            (failing.clone(), Started, None),
            (failing, Healthy, None),
            (fresh.clone(), Started, None),
            (fresh, Healthy, Some("no pass of it has succeeded yet")),
            (
                hapless,
                Healthy,
                Some("none of its passes has succeeded yet: no right"),
            ),
            (idle, Healthy, None),
            (
                waiting(),
                Started,
                Some("it is not running: DependencyNotReady"),
            ),
            (
                waiting(),
                Healthy,
                Some("it is not running: DependencyNotReady"),
            ),
            (
                OperatorStatus::default(),
                Started,
                Some("it is not running"),
            ),
        ] {
            assert_eq!(lacks(&status, condition).as_deref(), expected, "{status:?}");
        }
    }
}
