//! `onDelete`: the steps for a custom resource that is being deleted.

use orkestra_engine::reconcile::{
    deletion::{DeletionStep, finish},
    reason::Reason,
};
use orkestra_plan::ChildKey;
use orkestra_template::Entropy;
use serde_json::json;

use super::{
    operator::{operator, pond},
    server::{Operation, Stored},
    world::{World, key},
};

const DELETED: &str = "2026-03-01T07:00:00Z";

/// Returns a world whose custom resource is being deleted.
fn ended(declared: &str) -> World {
    let plan = operator(declared);
    let mut world = World::new(&plan, pond(&json!({ "on": true }), &json!({})));
    world.settle();
    world.cr["metadata"]["deletionTimestamp"] = json!(DELETED);
    world.now = DELETED.parse().unwrap();
    world
}

fn next(world: &World) -> DeletionStep {
    let entropy = Entropy::seeded([7; 32]);
    finish(
        &world.plan,
        &world.scopes,
        &world.observe(),
        world.now,
        &entropy,
    )
}

fn names<'a>(keys: impl IntoIterator<Item = &'a ChildKey>) -> Vec<String> {
    keys.into_iter()
        .map(|key| key.object.name.to_string())
        .collect()
}

fn made(deletion: &DeletionStep) -> Vec<String> {
    names(deletion.make.iter().map(|job| &job.key))
}

fn deleted(deletion: &DeletionStep) -> Vec<String> {
    names(deletion.delete.iter().map(|deletion| &deletion.key))
}

/// Executes a step like the runtime.
fn execute(world: &mut World, deletion: &DeletionStep) {
    for job in &deletion.make {
        let object = job.object.to_json();
        assert_eq!(object["metadata"].get("ownerReferences"), None);
        let stored = Stored::made(
            &object,
            &format!("end-{}", job.key),
            super::operator::MANAGER,
            Operation::Update,
        );
        world.objects.insert(job.key.clone(), stored);
    }
    for deletion in &deletion.delete {
        world.objects.remove(&deletion.key);
    }
    world.remember(&deletion.inventory.text());
}

fn complete(world: &mut World, job: &str, how: &str) {
    let status = json!({ "status": { "conditions": [{ "type": how, "status": "True" }] } });
    world.stored("Job.batch", job).update("kubelet", |leaves| {
        leaves.extend(super::leaves::leaves(&status));
    });
}

const JOB: &str = "apiVersion: batch/v1, kind: Job, spec: { template: {} }";

fn ordered() -> String {
    format!(
        "onReconcile: {{ configMaps: [{{ name: front }}, {{ name: back }}] }}
onDelete:
  ordered: true
  timeout: 2m
  groups:
    - {{ name: drain, custom: [{{ {JOB}, metadata: {{ name: drain }} }}] }}
    - {{ name: skipped, when: [{{ field: spec.on, equals: false }}], configMaps: [{{ name: back }}] }}
    - {{ name: front, configMaps: [{{ name: front }}] }}
    - {{ name: last, custom: [{{ {JOB}, metadata: {{ name: last }} }}] }}"
    )
}

#[test]
fn groups_are_gone_through_one_after_the_other() {
    let mut world = ended(&ordered());
    let first = next(&world);
    assert_eq!(
        (made(&first), deleted(&first)),
        (vec!["drain".to_owned()], vec![])
    );
    assert_eq!(first.step.as_deref(), Some("drain"));
    execute(&mut world, &first);
    let waits = next(&world);
    assert_eq!(names(&waits.awaited), ["drain"]);
    assert!(made(&waits).is_empty() && !waits.is_done());
    complete(&mut world, "drain", "Failed");
    let second = next(&world);
    assert_eq!(
        (made(&second), deleted(&second)),
        (vec![], vec!["front".to_owned()])
    );
    execute(&mut world, &second);
    let third = next(&world);
    assert_eq!(made(&third), ["last"]);
    execute(&mut world, &third);
    complete(&mut world, "last", "Complete");
    assert!(next(&world).is_done());
    assert!(world.objects.contains_key(&key("ConfigMap", "back")));
}

#[test]
fn a_job_that_is_gone_has_ended() {
    let mut world = ended(&ordered());
    let first = next(&world);
    execute(&mut world, &first);
    world.objects.remove(&key("Job.batch", "drain"));
    assert_eq!(deleted(&next(&world)), ["front"]);
}

#[test]
fn a_crash_between_a_job_and_the_inventory_makes_no_second_one() {
    let mut world = ended(&ordered());
    let before = world.cr.clone();
    let first = next(&world);
    execute(&mut world, &first);
    world.cr = before;
    let again = next(&world);
    assert!(made(&again).is_empty());
    assert_eq!(names(&again.awaited), ["drain"]);
    assert!(again.inventory.ended.contains(&key("Job.batch", "drain")));
}

#[test]
fn without_an_order_all_begin_at_once() {
    let mut world = ended(&ordered().replace("ordered: true", "ordered: false"));
    let first = next(&world);
    assert_eq!(
        (made(&first), deleted(&first)),
        (
            vec!["drain".to_owned(), "last".to_owned()],
            vec!["front".to_owned()]
        )
    );
    execute(&mut world, &first);
    complete(&mut world, "drain", "Complete");
    assert_eq!(names(&next(&world).awaited), ["last"]);
}

#[test]
fn after_the_timeout_nothing_is_begun_and_what_ends_by_itself_still_counts() {
    let mut world = ended(&ordered());
    let first = next(&world);
    assert_eq!(first.wake.unwrap().to_string(), "2026-03-01T07:02:00Z");
    execute(&mut world, &first);
    world.now = "2026-03-01T07:02:00Z".parse().unwrap();
    let late = next(&world);
    assert!(late.late && !late.is_done() && late.wake.is_none());
    assert_eq!(names(&late.awaited), ["drain"]);
    complete(&mut world, "drain", "Complete");
    let late = next(&world);
    assert!(late.late && made(&late).is_empty() && deleted(&late).is_empty());

    let alone = ordered();
    let alone = alone.split("    - { name: skipped").next().unwrap();
    let mut world = ended(alone);
    let first = next(&world);
    execute(&mut world, &first);
    world.now = "2026-03-01T09:00:00Z".parse().unwrap();
    assert!(next(&world).late);
    complete(&mut world, "drain", "Complete");
    assert!(next(&world).is_done());
}

#[test]
fn a_block_whose_gate_is_closed_does_nothing() {
    let world = ended(
        "onDelete: { when: [{ field: spec.on, equals: false }], custom: [{ apiVersion: batch/v1, kind: Job, metadata: { name: drain }, spec: { template: {} } }] }",
    );
    assert!(next(&world).is_done());
}

#[test]
fn what_cannot_be_rendered_is_waited_for() {
    let mut world = ended(
        "onDelete: { custom: [{ apiVersion: batch/v1, kind: Job, metadata: { name: '{{ .spec.name }}' }, spec: { template: {} } }] }",
    );
    let failed = next(&world);
    assert_eq!(failed.failures[0].reason, Reason::InvalidName);
    assert!(!failed.is_done());
    world.cr["spec"]["name"] = json!("drain");
    assert_eq!(made(&next(&world)), ["drain"]);
}

#[test]
fn what_is_not_ours_is_not_deleted() {
    let mut world = ended("onDelete: { configMaps: [{ name: theirs }] }");
    let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "theirs", "namespace": "east", "labels": { "orkestra.orkspace.io/owner-uid": super::operator::UID },
    } });
    let stored = Stored::made(&theirs, "x", "kubectl", Operation::Update);
    world.objects.insert(key("ConfigMap", "theirs"), stored);
    assert!(next(&world).is_done());
}

#[test]
fn elements_each_have_a_job() {
    let mut world = ended(
        "onDelete: { custom: [{ apiVersion: batch/v1, kind: Job, metadata: { name: 'drain-{{ .item }}' }, forEach: { field: spec.nodes }, spec: { template: {} } }] }",
    );
    world.cr["spec"]["nodes"] = json!(["a", "b"]);
    assert_eq!(made(&next(&world)), ["drain-a", "drain-b"]);
}
