//! The intent for each child, by block, gate, the source of the gate's operands, existing objects and earlier passes.

use serde_json::{Value, json};

use super::{
    operator::{operator, pond},
    server::{Operation, Stored},
    world::{World, key, rendered, words},
};

/// An entry for the object `a`.
const ONCE: &str = "onCreate: { configMaps: [{ name: a, WHEN }] }";
const RECREATED: &str = "onCreate: { configMaps: [{ name: a, reconcile: true, WHEN }] }";
const RECONCILED: &str = "onReconcile: { configMaps: [{ name: a, WHEN }] }";

const ON_SPEC: &str = "when: [{ field: spec.on, equals: true }]";
const ON_STATUS: &str = "when: [{ field: status.on, equals: true }]";

/// Returns a world in which the gate is open or closed, and an earlier pass has created the object or not.
fn world(block: &str, when: &str, open: bool, exists: bool) -> World {
    let gate = json!({ "on": open });
    let mut world = World::new(&operator(&block.replace("WHEN", when)), pond(&gate, &gate));
    if exists {
        let always = operator("onReconcile: { configMaps: [{ name: a }] }");
        let mut earlier = World::new(&always, pond(&json!({}), &json!({})));
        earlier.settle();
        world.objects = earlier.objects;
    }
    world
}

fn intent(block: &str, when: &str, open: bool, exists: bool, made: bool) -> String {
    let mut world = world(block, when, open, exists);
    if made {
        world.remember("ConfigMap,!ConfigMap=east/a");
    }
    let cycle = world.decide();
    assert_eq!(cycle.failures, []);
    assert!(cycle.intents.len() <= 1, "{:?}", words(&cycle));
    let found = words(&cycle).pop();
    found.map_or_else(String::new, |word| {
        word.split_once(' ').unwrap().0.to_owned()
    })
}

#[test]
fn a_reconciled_entry_is_applied_while_its_gate_is_open() {
    for block in [RECREATED, RECONCILED] {
        for when in [ON_SPEC, ON_STATUS] {
            for (exists, made) in [(false, false), (true, false), (false, true), (true, true)] {
                assert_eq!(
                    intent(block, when, true, exists, made),
                    "apply",
                    "{block} {when} {exists} {made}"
                );
            }
        }
    }
}

#[test]
fn a_gate_that_the_spec_closes_deletes_and_one_that_the_status_closes_keeps() {
    for block in [RECREATED, RECONCILED] {
        for made in [false, true] {
            assert_eq!(
                intent(block, ON_SPEC, false, true, made),
                "delete",
                "{block}"
            );
            assert_eq!(intent(block, ON_SPEC, false, false, made), "", "{block}");
            for exists in [false, true] {
                assert_eq!(
                    intent(block, ON_STATUS, false, exists, made),
                    "keep",
                    "{block}"
                );
            }
        }
    }
}

#[test]
fn what_the_entry_says_of_a_closed_gate_wins() {
    for block in [RECREATED, RECONCILED] {
        let keep = format!("{ON_SPEC}, onFalse: keep");
        assert_eq!(intent(block, &keep, false, true, false), "keep");
        let delete = format!("{ON_STATUS}, onFalse: delete");
        assert_eq!(intent(block, &delete, false, true, false), "delete");
    }
}

#[test]
fn a_gate_keeps_where_any_operand_comes_from_the_world() {
    let both = "when: [{ field: spec.on, equals: true }, { field: status.on, equals: true }]";
    assert_eq!(intent(RECONCILED, both, false, true, false), "keep");
    let right = "when: [{ field: spec.on, equals: '{{ .status.on }}x' }]";
    assert_eq!(intent(RECONCILED, right, false, true, false), "keep");
    let template = "when: [{ field: '{{ .spec.on }}', equals: true }]";
    assert_eq!(intent(RECONCILED, template, false, true, false), "delete");
    let own = "when: [{ field: metadata.name, equals: other }]";
    assert_eq!(intent(RECONCILED, own, false, true, false), "delete");
}

#[test]
fn a_plain_entry_is_created_once_and_kept_for_good() {
    for when in [ON_SPEC, ON_STATUS] {
        assert_eq!(intent(ONCE, when, true, false, false), "create");
        assert_eq!(
            intent(ONCE, when, true, true, false),
            "keep",
            "the process ended before it wrote the inventory"
        );
        assert_eq!(intent(ONCE, when, true, true, true), "keep");
        assert_eq!(
            intent(ONCE, when, true, false, true),
            "keep",
            "the object was deleted"
        );
        for (exists, made) in [(false, false), (true, false), (false, true), (true, true)] {
            assert_eq!(
                intent(ONCE, when, false, exists, made),
                "keep",
                "{when} {exists} {made}"
            );
        }
    }
}

#[test]
fn a_strangers_object_of_the_name_does_not_count_as_made() {
    let mut world = world(ONCE, ON_SPEC, true, false);
    let theirs = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "a", "namespace": "east", "labels": { "orkestra.orkspace.io/owner-uid": super::operator::UID },
    } });
    world.objects.insert(
        key("ConfigMap", "a"),
        Stored::made(&theirs, "x", "kubectl", Operation::Update),
    );
    assert_eq!(words(&world.decide()), ["create ConfigMap east/a"]);
}

#[test]
fn a_job_is_made_once_whatever_the_block_says() {
    let job = "custom: [{ apiVersion: batch/v1, kind: Job, metadata: { name: j }, spec: { parallelism: '{{ .spec.x }}', template: {} } }]";
    let mut world = World::new(
        &operator(&format!("onReconcile: {{ {job} }}")),
        pond(&json!({ "x": 1 }), &json!({})),
    );
    assert_eq!(words(&world.decide()), ["create Job.batch east/j"]);
    world.settle();
    world.cr["spec"]["x"] = json!(2);
    assert_eq!(words(&world.decide()), ["keep Job.batch east/j"]);
}

const TURNS: &str = "onReconcile:
  configMaps:
    - { name: a, data: { at: day }, when: [{ field: spec.day, equals: true }] }
    - { name: a, data: { at: night }, when: [{ field: spec.day, notEquals: true }] }";

#[test]
fn two_entries_of_one_name_take_turns_without_a_delete() {
    let plan = operator(TURNS);
    let mut world = World::new(&plan, pond(&json!({ "day": true }), &json!({})));
    for (day, text) in [
        (json!(true), "day"),
        (json!(false), "night"),
        (Value::Null, "night"),
        (json!(true), "day"),
    ] {
        world.cr["spec"]["day"] = day;
        let cycle = world.decide();
        assert_eq!(
            (words(&cycle), &cycle.failures[..]),
            (vec!["apply ConfigMap east/a".to_owned()], &[][..])
        );
        assert_eq!(
            rendered(&cycle, &key("ConfigMap", "a")).object.to_json()["data"]["at"],
            text
        );
        world.settle();
    }
}

#[test]
fn an_entry_of_the_name_that_stays_keeps_one_whose_gate_closed() {
    let plan = operator(
        "onCreate: { configMaps: [{ name: a, when: [{ field: spec.first, exists: true }] }] }
onReconcile: { configMaps: [{ name: a, when: [{ field: spec.on, equals: true }] }] }",
    );
    let mut world = World::new(&plan, pond(&json!({ "on": true }), &json!({})));
    world.settle();
    world.cr["spec"]["on"] = json!(false);
    assert_eq!(words(&world.decide()), ["keep ConfigMap east/a"]);
}

#[test]
fn names_that_become_equal_fail_and_delete_nothing() {
    let plan = operator(
        "onReconcile: { configMaps: [{ name: '{{ .spec.a }}', data: { from: first } }, { name: '{{ .spec.b }}' }] }",
    );
    let mut world = World::new(&plan, pond(&json!({ "a": "x", "b": "y" }), &json!({})));
    world.settle();
    world.cr["spec"]["b"] = json!("x");
    let cycle = world.decide();
    let [failure] = &cycle.failures[..] else {
        panic!("{:?}", cycle.failures)
    };
    assert_eq!(
        (failure.reason.as_str(), failure.reason.is_permanent()),
        ("DuplicateChild", true)
    );
    assert!(failure.at.ends_with("configMaps[1]"), "{}", failure.at);
    assert!(
        !words(&cycle).iter().any(|word| word.starts_with("delete")),
        "{:?}",
        words(&cycle)
    );
    assert_eq!(
        rendered(&cycle, &key("ConfigMap", "x")).object.to_json()["data"]["from"],
        "first"
    );
}

#[test]
fn a_closed_gate_needs_no_name() {
    for (name, when) in [
        (
            "'{{ .spec.cache }}'",
            "[{ field: spec.cache, exists: true }]",
        ),
        (
            "'{{ .status.cache }}'",
            "[{ field: status.cache, exists: true }]",
        ),
    ] {
        let plan = operator(&format!(
            "onReconcile: {{ configMaps: [{{ name: {name}, when: {when} }}, {{ name: b }}] }}"
        ));
        let cycle = World::new(&plan, pond(&json!({}), &json!({}))).decide();
        assert_eq!(
            (words(&cycle), cycle.failures),
            (vec!["apply ConfigMap east/b".to_owned()], vec![])
        );
    }
}

#[test]
fn a_name_that_goes_with_its_gate_takes_the_child_along() {
    let plan = operator(
        "onReconcile: { configMaps: [{ name: '{{ .spec.cache }}', when: [{ field: spec.cache, exists: true }] }] }",
    );
    let mut world = World::new(&plan, pond(&json!({ "cache": "c" }), &json!({})));
    world.settle();
    world.cr["spec"] = json!({});
    assert_eq!(words(&world.decide()), ["delete ConfigMap east/c"]);
}

#[test]
fn a_name_that_goes_with_a_gate_of_the_world_leaves_its_child() {
    let plan = operator(
        "onReconcile: { configMaps: [{ name: '{{ .status.cache }}', when: [{ field: status.cache, exists: true }] }] }",
    );
    let mut world = World::new(&plan, pond(&json!({}), &json!({ "cache": "c" })));
    world.settle();
    world.cr["status"] = json!({});
    assert_eq!(words(&world.decide()), Vec::<String>::new());
}

#[test]
fn a_child_that_is_being_deleted_is_not_deleted_again() {
    let mut world = world(RECONCILED, ON_SPEC, false, true);
    let mut observed = world.observe();
    let mut record = world.record_of(&key("ConfigMap", "a"));
    record.deleting = true;
    observed.children[0].record = record.into();
    let cycle = world.decide_on(&observed);
    assert_eq!(cycle.intents, []);
    assert_eq!(world.pass().written, [key("ConfigMap", "a")]);
}

#[test]
fn the_first_pass_remembers_what_it_is_about_to_make() {
    let mut world = world(ONCE, "", true, false);
    world.reported = Some(false);
    let cycle = world.decide();
    assert_eq!(words(&cycle), ["create ConfigMap east/a"]);
    assert_eq!(cycle.inventory.text(), "ConfigMap,!ConfigMap=east/a");
    assert_eq!(cycle.ahead, cycle.inventory.made);
}

#[test]
fn what_is_remembered_and_was_never_reported_is_made_after_a_crash() {
    let mut world = world(ONCE, "", true, false);
    world.remember("ConfigMap,!ConfigMap=east/a");
    world.reported = Some(false);
    assert_eq!(words(&world.decide()), ["create ConfigMap east/a"]);
    world.reported = Some(true);
    assert_eq!(words(&world.decide()), ["keep ConfigMap east/a"]);
}

#[test]
fn a_later_pass_remembers_what_it_made_when_it_has_made_it() {
    let mut world = world(ONCE, "", true, false);
    world.reported = Some(true);
    let cycle = world.decide();
    assert_eq!(cycle.inventory.text(), "ConfigMap");
    assert!(cycle.ahead.is_empty());
}
