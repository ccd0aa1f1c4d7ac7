use super::*;

fn of(kind: &str, json: &str) -> Readiness {
    readiness(
        &GroupKind::parse(kind),
        &serde_json::from_str(json).unwrap(),
    )
}

#[test]
fn a_deployment_is_current_when_all_replicas_are_updated_and_available() {
    let status = |ready: u8, total: u8| {
        format!(
            r#"{{"metadata":{{"generation":2}},"spec":{{"replicas":2}},"status":{{"observedGeneration":2,"replicas":{total},"updatedReplicas":2,"readyReplicas":{ready},"availableReplicas":{ready}}}}}"#
        )
    };
    assert_eq!(of("Deployment.apps", &status(2, 2)), Readiness::Current);
    assert_eq!(
        of("Deployment.apps", &status(1, 2)),
        Readiness::InProgress("1 of 2 replicas available".into())
    );
    assert_eq!(
        of("Deployment.apps", &status(2, 3)),
        Readiness::InProgress("1 old replicas are pending termination".into())
    );
}

/// G7: a rollout in progress is not ready.
#[test]
fn a_stateful_set_is_current_when_its_update_revision_is_rolled_out() {
    let of = |strategy: &str, ready: u8, updated: u8, current: &str| {
        let json = format!(
            r#"{{"metadata":{{"generation":2}},"spec":{{"replicas":3,"updateStrategy":{strategy}}},"status":{{"observedGeneration":2,"replicas":3,"readyReplicas":{ready},"updatedReplicas":{updated},"currentRevision":"{current}","updateRevision":"db-2"}}}}"#
        );
        of("StatefulSet.apps", &json)
    };
    let rolling = r#"{"type":"RollingUpdate","rollingUpdate":{"partition":0}}"#;
    let waits = |text: &str| Readiness::InProgress(text.into());
    assert_eq!(of(rolling, 3, 3, "db-2"), Readiness::Current);
    assert_eq!(of(rolling, 2, 3, "db-2"), waits("2 of 3 replicas ready"));
    // All replicas are ready, and some still have the previous revision.
    assert_eq!(of(rolling, 3, 1, "db-1"), waits("1 of 3 replicas updated"));
    assert_eq!(
        of(rolling, 3, 3, "db-1"),
        waits("the rollout of its update revision is not complete")
    );
    let partition = r#"{"type":"RollingUpdate","rollingUpdate":{"partition":2}}"#;
    assert_eq!(of(partition, 3, 1, "db-1"), Readiness::Current);
    assert_eq!(
        of(partition, 3, 0, "db-1"),
        waits("0 of 1 replicas updated")
    );
    assert_eq!(
        of(r#"{"type":"OnDelete"}"#, 3, 0, "db-1"),
        Readiness::Current
    );
}

#[test]
fn replicas_that_are_too_many_have_to_go() {
    let json = r#"{"metadata":{"generation":1},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":2,"readyReplicas":1}}"#;
    assert_eq!(
        of("ReplicaSet.apps", json),
        Readiness::InProgress("1 excess replicas remain".into())
    );
}

#[test]
fn a_daemon_set_is_current_when_every_pod_is_updated_and_available() {
    let of = |updated: u8, available: u8| {
        let json = format!(
            r#"{{"metadata":{{"generation":2}},"status":{{"observedGeneration":2,"desiredNumberScheduled":3,"updatedNumberScheduled":{updated},"numberAvailable":{available}}}}}"#
        );
        of("DaemonSet.apps", &json)
    };
    assert_eq!(of(3, 3), Readiness::Current);
    for (updated, available) in [(1, 3), (3, 1)] {
        let waits = Readiness::InProgress("1 of 3 pods available".into());
        assert_eq!(of(updated, available), waits);
    }
}

#[test]
fn a_deployment_nobody_has_looked_at_is_in_progress() {
    assert!(matches!(
        of("Deployment.apps", r#"{"spec":{"replicas":0}}"#),
        Readiness::InProgress(_)
    ));
}

#[test]
fn an_old_observed_generation_is_in_progress_for_any_kind() {
    let json = r#"{"metadata":{"generation":3},"status":{"observedGeneration":2,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    assert!(matches!(
        of("Thing.example.org", json),
        Readiness::InProgress(_)
    ));
}

#[test]
fn an_object_without_conditions_is_current() {
    assert_eq!(of("ConfigMap", r#"{"data":{}}"#), Readiness::Current);
}

#[test]
fn a_stalled_object_has_failed() {
    let json =
        r#"{"status":{"conditions":[{"type":"Stalled","status":"True","message":"no quota"}]}}"#;
    assert_eq!(
        of("Thing.example.org", json),
        Readiness::Failed("no quota".into())
    );
}

#[test]
fn what_is_behind_an_object_says_nothing_before_its_controller_has_seen_it() {
    let unobserved = [
        r#"{"metadata":{"generation":1},"spec":{"replicas":1}}"#,
        r#"{"metadata":{"generation":2},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1}}"#,
    ];
    for object in unobserved {
        assert!(of("Deployment.apps", object).is_unobserved(), "{object}");
    }
    let waiting = r#"{"metadata":{"generation":1},"spec":{"replicas":1},"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1}}"#;
    assert!(!of("Deployment.apps", waiting).is_unobserved());
}
