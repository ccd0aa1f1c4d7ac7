use super::*;

fn key(name: usize) -> ObjectKey {
    ObjectKey {
        namespace: Some("east".into()),
        name: name.to_string().into(),
    }
}

fn of(instances: usize) -> Measure {
    Measure {
        threshold: 3,
        instances,
        namespaces: 1,
        now: jiff::Timestamp::UNIX_EPOCH,
    }
}

/// Records passes over resources, given by number, negative for a failed pass. Returns the change of health after each.
fn passes(
    health: &mut OperatorHealth,
    instances: usize,
    outcomes: &[i32],
) -> Vec<Option<HealthChange>> {
    let mut pass = |outcome: &i32| {
        let key = key(outcome.unsigned_abs() as usize);
        if *outcome < 0 {
            health.failed(
                &key,
                (FailureScope::Operator, "no room"),
                true,
                of(instances),
            )
        } else {
            health.passed(&key, of(instances))
        }
    };
    outcomes.iter().map(&mut pass).collect()
}

/// Records a pass over the resource `number` that failed because of the resource's own input.
fn fail_alone(
    health: &mut OperatorHealth,
    number: usize,
    instances: usize,
) -> Option<HealthChange> {
    let error = (FailureScope::CustomResource, "no name");
    health.failed(&key(number), error, false, of(instances))
}

/// Records failed passes over resources, given by namespace and number, with the namespace as the cause. There are eight resources
/// in `namespaces` namespaces.
fn fail_locally(
    health: &mut OperatorHealth,
    namespaces: usize,
    keys: &[(&str, usize)],
) -> Vec<Option<HealthChange>> {
    let mut fail = |(namespace, number): &(&str, usize)| {
        let key = ObjectKey {
            namespace: Some((*namespace).into()),
            ..key(*number)
        };
        health.failed(
            &key,
            (FailureScope::Namespace, "quota"),
            true,
            spread(namespaces),
        )
    };
    keys.iter().map(&mut fail).collect()
}

fn spread(namespaces: usize) -> Measure {
    Measure {
        namespaces,
        ..of(8)
    }
}

const DEGRADED: Option<HealthChange> = Some(HealthChange::Degraded);
const RECOVERED: Option<HealthChange> = Some(HealthChange::Recovered);

#[test]
fn few_failing_resources_among_many_never_degrade_an_operator() {
    let mut health = OperatorHealth::default();
    // The number of retries of a resource does not matter.
    assert_eq!(passes(&mut health, 9, &[-1; 40]), [None; 40]);
    assert_eq!(passes(&mut health, 9, &[-2, -3, -4, -1]), [None; 4]);
    assert_eq!(health.failed_in_row(), 44);
    // Five of nine resources fail: at least half, and at least three.
    assert_eq!(passes(&mut health, 9, &[-5]), [DEGRADED]);
    let message = "5 of 9 custom resources fail; last failure: east/5: no room";
    assert_eq!(health.degraded().unwrap().message, message);
}

#[test]
fn half_of_all_is_not_enough_where_that_is_less_than_the_threshold() {
    let mut health = OperatorHealth::default();
    assert_eq!(passes(&mut health, 3, &[-1, -2, -1, -2, -1]), [None; 5]);
    assert_eq!(passes(&mut health, 3, &[-3]), [DEGRADED]);
    // With fewer resources than the threshold, all must fail, and the number of failures must reach the threshold.
    let mut health = OperatorHealth::default();
    assert_eq!(passes(&mut health, 2, &[-1, -1, -1, -1]), [None; 4]);
    assert_eq!(passes(&mut health, 2, &[-2]), [DEGRADED]);
    let mut health = OperatorHealth::default();
    assert_eq!(
        passes(&mut health, 1, &[-1, -1, -1]),
        [None, None, DEGRADED]
    );
}

#[test]
fn many_that_fail_degrade_it_though_others_succeed_in_between() {
    let mut health = OperatorHealth::default();
    let turns = passes(&mut health, 6, &[-1, 4, -2, 5, 6, -3, 4]);
    assert_eq!(turns[5], DEGRADED);
    assert!(turns.iter().filter(|turn| turn.is_some()).count() == 1);
    // Half of all resources still fail, even if the others succeed.
    assert_eq!(passes(&mut health, 6, &[4, 5, 6, 4, 5]), [None; 5]);
    assert_eq!(passes(&mut health, 6, &[1]), [RECOVERED]);
    // Three failing resources are not enough among seven.
    let mut health = OperatorHealth::default();
    assert_eq!(passes(&mut health, 7, &[-1, 4, -2, 5, -3]), [None; 5]);
}

#[test]
fn it_recovers_as_soon_as_those_that_failed_succeed() {
    let mut health = OperatorHealth::default();
    let all: Vec<i32> = (1..=20).map(|one| -one).collect();
    assert!(passes(&mut health, 20, &all).contains(&DEGRADED));
    // Most resources have not been retried yet; three successive recoveries show that the cause is fixed.
    assert_eq!(passes(&mut health, 20, &[1, 2, -3]), [None; 3]);
    assert_eq!(passes(&mut health, 20, &[4, 5, 6]), [None, None, RECOVERED]);
    // Resources that still fail must reach the threshold again.
    assert_eq!(
        passes(&mut health, 20, &[-7, -8, -9]),
        [None, None, DEGRADED]
    );
    let mut health = OperatorHealth::default();
    passes(&mut health, 1, &[-1, -1, -1]);
    assert_eq!(passes(&mut health, 1, &[1]), [RECOVERED]);
}

#[test]
fn a_resource_that_goes_fails_no_more_and_degrades_nothing() {
    let mut health = OperatorHealth::default();
    passes(&mut health, 2, &[-1, -2, -1]);
    assert_eq!(health.gone(&key(7), of(2)), None);
    assert_eq!(health.gone(&key(1), of(1)), None);
    assert_eq!(health.gone(&key(2), of(0)), RECOVERED);
    assert_eq!(health.failed_in_row(), 0);

    // Three of seven resources fail; after another one is deleted, three of six do.
    let mut health = OperatorHealth::default();
    passes(&mut health, 7, &[-1, -2, -3, -1]);
    fail_alone(&mut health, 7, 7);
    assert_eq!(health.gone(&key(7), of(6)), None);
    assert!(health.degraded().is_none());
}

#[test]
fn resources_whose_own_input_fails_degrade_nothing_and_hide_nothing() {
    let mut health = OperatorHealth::default();
    for number in 0..50 {
        assert_eq!(fail_alone(&mut health, number, 53), None);
    }
    assert_eq!(health.failed_in_row(), 0);
    // The three resources whose own input is valid all fail.
    assert_eq!(
        passes(&mut health, 53, &[-51, -52, -53]),
        [None, None, DEGRADED]
    );
    let message = "3 of 3 custom resources fail; last failure: east/53: no room";
    assert_eq!(health.degraded().unwrap().message, message);
    // One of them now fails because of its own input; the other two still fail.
    assert_eq!(fail_alone(&mut health, 51, 53), None);
    assert_eq!(passes(&mut health, 53, &[52]), [RECOVERED]);
}

const EAST: [(&str, usize); 4] = [("east", 1), ("east", 2), ("east", 3), ("east", 4)];

#[test]
fn failures_of_one_of_several_namespaces_degrade_nothing_and_hide_nothing() {
    let mut health = OperatorHealth::default();
    for _ in 0..10 {
        assert_eq!(fail_locally(&mut health, 2, &EAST), [None; 4]);
    }
    assert_eq!(health.failed_in_row(), 0);
    // Three of the four other resources fail with the operator as the cause, which reaches the threshold.
    let mut fail = |number| {
        let error = (FailureScope::Operator, "no room");
        health.failed(&key(number), error, true, spread(2))
    };
    assert_eq!([5, 6, 5, 7].map(&mut fail), [None, None, None, DEGRADED]);
    assert_eq!(fail(8), None);
    let message = "3 of 4 custom resources fail; last failure: east/7: no room";
    assert_eq!(health.degraded().unwrap().message, message);
    // The recovery of resources that did not count does not show that the cause is fixed.
    for number in 1..5 {
        assert_eq!(health.passed(&key(number), spread(2)), None);
    }
}

#[test]
fn failures_of_several_namespaces_or_of_the_only_one_degrade_it() {
    let mut health = OperatorHealth::default();
    assert_eq!(
        fail_locally(&mut health, 1, &EAST),
        [None, None, None, DEGRADED]
    );
    // A second namespace now has resources, which do not fail.
    assert_eq!(fail_locally(&mut health, 2, &EAST[..1]), [RECOVERED]);

    let mut health = OperatorHealth::default();
    fail_locally(&mut health, 3, &EAST);
    let west = [("west", 5); 3];
    assert_eq!(fail_locally(&mut health, 3, &west), [None, None, DEGRADED]);
    let message = "5 of 8 custom resources fail; last failure: west/5: quota";
    assert_eq!(health.degraded().unwrap().message, message);
}

#[test]
fn a_failure_that_is_not_retried_counts_once_for_each_resource() {
    let mut health = OperatorHealth::default();
    let mut fail = |number| {
        health.failed(
            &key(number),
            (FailureScope::Operator, "no right"),
            false,
            of(3),
        )
    };
    let turns = [1, 1, 1, 1, 2, 1, 2, 3].map(&mut fail);
    assert_eq!(turns[..7], [None; 7]);
    assert_eq!(turns[7], DEGRADED);
}

#[test]
fn a_state_is_one_word() {
    let running = OperatorStatus {
        phase: Phase::Running,
        passes: 4,
        ..OperatorStatus::default()
    };
    assert_eq!(OperatorState::of(&running), OperatorState::Healthy);
    let degraded = OperatorStatus {
        degraded: Some(Degraded {
            since: jiff::Timestamp::UNIX_EPOCH,
            message: "3 passes in a row failed".to_owned(),
        }),
        ..running.clone()
    };
    assert_eq!(OperatorState::of(&degraded), OperatorState::Degraded);
    // Failures below the threshold do not change the state.
    let failing = OperatorStatus {
        consecutive_failures: 2,
        failures: 2,
        ..running
    };
    assert_eq!(OperatorState::of(&failing), OperatorState::Healthy);
}
