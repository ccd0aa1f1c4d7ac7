//! Hooks with the protocol of Metacontroller, and the end of a custom resource.

use orkestra_engine::reconcile::{
    deletion::{DeletionStep, finish},
    reason::Reason,
    sources::Read,
};
use orkestra_template::Entropy;
use serde_json::{Value, json};

use super::{answered, status_of};
use crate::pass::{
    calls::good,
    operator::{operator, pond},
    world::{World, words},
};

const METACONTROLLER: &str = r#"
default: false
constructor:
  http: { url: "http://hooks.shop/sync", finalizeUrl: "http://hooks.shop/finalize", protocol: metacontroller }
  managedResources: [{ kind: Pod }, { apiVersion: apps/v1, kind: StatefulSet }]
"#;

#[test]
fn hooks_of_metacontroller_are_asked_and_read_as_it_does() {
    let world = World::new(
        &operator(METACONTROLLER),
        pond(&json!({ "who": "moon" }), &json!({ "old": 1 })),
    );
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "hello", "labels": { "app": "x" } },
        "spec": { "containers": [{ "name": "hello", "image": "busybox" }] },
    });
    let answer = json!({
        "status": { "pods": 0, "conditions": [{ "type": "Done", "status": "False", "reason": "Running" }] },
        "children": [pod], "resyncAfterSeconds": 2.5, "labels": { "seen": "yes" }, "extra": true,
    });
    let (mut cycle, asked) = answered(&world, &answer);
    assert_eq!(cycle.failures, []);
    let request = &asked[0];
    assert_eq!(
        (&request["finalizing"], &request["parent"]["spec"]["who"]),
        (&false.into(), &"moon".into())
    );
    assert_eq!(request["object"], request["parent"]);
    assert_eq!(
        request["children"],
        json!({ "Pod.v1": {}, "StatefulSet.apps/v1": {} })
    );
    assert_eq!(words(&cycle), ["apply Pod east/hello"]);
    assert_eq!(cycle.requeue.unwrap().as_millis(), 2500);
    let labels: Vec<_> = cycle
        .labels
        .iter()
        .map(|(key, value)| (key.key(), &**value))
        .collect();
    assert_eq!(labels, [("seen", "yes")]);
    let status = status_of(&world, &mut cycle);
    assert_eq!(
        (&status["pods"], &status["old"]),
        (&0.into(), &Value::Null),
        "a field that is not returned stays"
    );
    let conditions = status["conditions"].as_array().unwrap();
    assert!(
        conditions
            .iter()
            .any(|one| one["type"] == "Done" && one["reason"] == "Running")
    );
    // The attachments of a decorator are children.
    let (cycle, _) = answered(&world, &json!({ "attachments": [pod] }));
    assert_eq!(words(&cycle), ["apply Pod east/hello"]);
}

fn leave(world: &World, answer: &Value) -> (DeletionStep, Vec<Value>) {
    let (mut observed, mut asked) = (world.observe(), Vec::new());
    loop {
        let step = finish(
            &world.plan,
            &world.scopes,
            &observed,
            world.now,
            &Entropy::seeded([7; 32]),
        );
        if step.needs.is_empty() {
            return (step, asked);
        }
        for read in step.needs {
            let Read::Call(request) = &read else {
                panic!("{read:?}")
            };
            asked.push(serde_json::from_str(&request.body).unwrap());
            observed
                .answers
                .insert(read, good(200, &answer.to_string()));
        }
    }
}

#[test]
fn a_resource_stays_until_its_hook_has_finalized_it() {
    let mut world = World::new(&operator(METACONTROLLER), pond(&json!({}), &json!({})));
    let pod = |name: &str| json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name }, "spec": {} });
    let (cycle, _) = answered(&world, &json!({ "children": [pod("a"), pod("b")] }));
    world.execute(cycle, usize::MAX);
    world.cr["metadata"]["deletionTimestamp"] = json!("2026-03-01T07:00:00Z");
    let (step, asked) = leave(
        &world,
        &json!({ "finalized": false, "children": [pod("a")], "resyncAfterSeconds": 5 }),
    );
    assert_eq!(asked[0]["finalizing"], true);
    assert!(!step.is_done());
    assert_eq!(
        step.delete
            .iter()
            .map(|one| &*one.key.object.name)
            .collect::<Vec<_>>(),
        ["b"]
    );
    assert!(step.wake.is_some());
    let (step, _) = leave(
        &world,
        &json!({ "finalized": false, "children": [pod("a"), pod("b")] }),
    );
    assert!(!step.is_done() && step.delete.is_empty());
    let (step, _) = leave(&world, &json!({ "finalized": true }));
    assert!(step.is_done());
    let (step, _) = leave(&world, &json!({ "error": "not yet" }));
    assert_eq!(
        (step.is_done(), step.failures[0].reason),
        (false, Reason::HookFailed)
    );
}
