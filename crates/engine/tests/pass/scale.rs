//! Workloads whose replicas follow conditions.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    world::{World, key, rendered},
};

const PUMP: &str = "
onReconcile:
  deployments:
    - name: pump
      image: registry.example/pump:1
      replicas: 2
      autoscale:
        min: 1
        max: \"{{ .spec.most }}\"
        cooldown: 60s
        scaleUp:
          conditions: { when: [{ field: spec.load, greaterThan: 80 }] }
          increment: 2
        scaleDown:
          conditions: { when: [{ field: spec.load, lessThan: 20 }] }
";

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_900_000_000).unwrap() + SignedDuration::from_secs(seconds)
}

/// Returns a world whose pump has run since second 0.
fn world() -> World {
    let spec = json!({ "load": 50, "most": 5 });
    let mut world = World::new(&operator(PUMP), pond(&spec, &json!({})));
    pass(&mut world, 0, 50);
    world
}

/// Runs a pass at this second under this load, and another one that must write nothing. Returns the replicas and the time of the
/// next pass.
fn pass(world: &mut World, second: i64, load: i64) -> (Value, Option<Timestamp>) {
    world.cr["spec"]["load"] = load.into();
    world.now = at(second);
    let first = world.pass();
    assert_eq!(first.cycle.failures, []);
    let again = world.pass();
    assert_eq!(again.written, [], "second {second}");
    let pump = world.stored("Deployment.apps", "pump").object();
    (pump["spec"]["replicas"].clone(), again.cycle.wake)
}

#[test]
fn pods_come_and_go_step_by_step_within_the_bounds() {
    let mut world = world();
    let mut steps = Vec::new();
    for (second, load) in [
        (0, 50),
        (10, 90),
        (20, 90),
        (70, 90),
        (130, 90),
        (200, 50),
        (300, 10),
        (310, 10),
        (360, 10),
    ] {
        steps.push((second, pass(&mut world, second, load)));
    }
    let due = |second| Some(at(second));
    let expected = [
        (0, (json!(2), None)),
        (10, (json!(4), due(70))),
        (20, (json!(4), due(70))),
        (70, (json!(5), None)),
        (130, (json!(5), None)),
        (200, (json!(5), None)),
        (300, (json!(4), due(360))),
        (310, (json!(4), due(360))),
        (360, (json!(3), due(420))),
    ];
    assert_eq!(steps, expected);
}

#[test]
fn what_is_declared_is_only_where_it_starts() {
    let mut world = world();
    pass(&mut world, 10, 90);
    // A new image does not change the replicas.
    world.plan = operator(&PUMP.replace("pump:1", "pump:2"));
    assert_eq!(pass(&mut world, 500, 50).0, json!(4));
    // A new bound applies at once.
    world.cr["spec"]["most"] = 3.into();
    assert_eq!(pass(&mut world, 501, 50).0, json!(3));
}

#[test]
fn a_workload_that_is_made_again_starts_again() {
    let mut world = world();
    pass(&mut world, 10, 90);
    world.objects.remove(&key("Deployment.apps", "pump"));
    assert_eq!(pass(&mut world, 20, 50).0, json!(2));
}

#[test]
fn a_count_that_was_decided_from_an_earlier_one_is_outdated() {
    let mut world = world();
    let pump = key("Deployment.apps", "pump");
    pass(&mut world, 10, 90);
    let cycle = world.decide();
    let decided = rendered(&cycle, &pump);
    assert!(!decided.is_outdated(&world.record_of(&pump)));
    // Another client sets other replicas before the write.
    let scaled = json!({ "spec": { "replicas": 3 } });
    let pods = world.stored("Deployment.apps", "pump");
    pods.apply(&scaled, "kubectl", true).unwrap();
    assert!(decided.is_outdated(&world.record_of(&pump)));
    assert_eq!(pass(&mut world, 20, 50).0, json!(3));
    // A workload that did not exist was not scaled by another client.
    let mut fresh = World::new(&world.plan, world.cr.clone());
    let cycle = fresh.decide();
    fresh.execute(cycle.clone(), usize::MAX);
    assert!(!rendered(&cycle, &pump).is_outdated(&fresh.record_of(&pump)));
}
