//! Children that are no longer declared, and the inventory that finds them.

use std::collections::BTreeSet;

use orkestra_plan::GroupKind;
use serde_json::{Value, json};

use super::{
    leaves::Step,
    operator::{MANAGER, UID, operator, pond},
    server::{Operation, Stored},
    world::{World, key, key_in, scopes, words},
};

const NOTHING: &str = "onReconcile: { configMaps: [{ name: other }] }";

/// Returns a settled world of `before`, with the plan of `after`.
fn changed(before: &str, after: &str) -> World {
    let spec = json!({ "name": "fine" });
    let mut world = World::new(&operator(before), pond(&spec, &json!({})));
    world.settle();
    world.plan = operator(after);
    let more = scopes(&world.plan);
    world.scopes.extend(more);
    world
}

fn deletions(world: &World) -> Vec<String> {
    words(&world.decide())
        .into_iter()
        .filter(|word| word.starts_with("delete"))
        .collect()
}

#[test]
fn an_undeclared_child_of_ours_goes() {
    let mut world = changed(
        "onReconcile: { configMaps: [{ name: a }], secrets: [{ name: s }] }",
        NOTHING,
    );
    assert_eq!(
        deletions(&world),
        ["delete ConfigMap east/a", "delete Secret east/s"]
    );
    world.settle();
    assert_eq!(
        world.objects.keys().collect::<Vec<_>>(),
        [&key("ConfigMap", "other")]
    );
}

#[test]
fn an_undeclared_child_that_was_made_once_goes_too() {
    let world = changed("onCreate: { configMaps: [{ name: a }] }", NOTHING);
    assert_eq!(deletions(&world), ["delete ConfigMap east/a"]);
}

#[test]
fn a_child_elsewhere_goes_by_its_label_and_field_manager() {
    let world = changed(
        "onReconcile: { configMaps: [{ name: a, namespace: west }] }",
        NOTHING,
    );
    assert_eq!(deletions(&world), ["delete ConfigMap west/a"]);
}

#[test]
fn data_and_namespaces_stay() {
    let world = changed(
        "onReconcile:
  custom:
    - { apiVersion: v1, kind: PersistentVolumeClaim, metadata: { name: c }, spec: { volumeName: x } }
    - { apiVersion: v1, kind: PersistentVolume, metadata: { name: v }, spec: { storageClassName: x } }
    - { apiVersion: v1, kind: Namespace, metadata: { name: n } }",
        NOTHING,
    );
    assert_eq!(world.objects.len(), 3);
    assert_eq!(deletions(&world), Vec::<String>::new());
}

#[test]
fn a_claim_whose_gate_the_spec_closes_goes() {
    let claim = "onReconcile: { custom: [{ apiVersion: v1, kind: PersistentVolumeClaim, metadata: { name: c }, spec: { volumeName: x }, when: [{ field: spec.name, equals: fine }] }] }";
    let mut world = changed(claim, claim);
    world.cr["spec"]["name"] = json!("other");
    assert_eq!(deletions(&world), ["delete PersistentVolumeClaim east/c"]);
}

/// Returns a world with a `ConfigMap` that looks like a child of this operator, except for the changes of `edit`.
fn copy(edit: impl FnOnce(&mut Value), manager: &str, operation: Operation) -> World {
    let mut world = World::new(&operator(NOTHING), pond(&json!({}), &json!({})));
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "copy", "namespace": "east",
            "labels": { "orkestra.orkspace.io/managed": "true", "orkestra.orkspace.io/owner-uid": UID },
            "annotations": { "orkestra.orkspace.io/child": "ConfigMap/copy" },
            "ownerReferences": [{ "uid": UID, "controller": true }],
        },
    });
    edit(&mut object);
    world.objects.insert(
        key("ConfigMap", "copy"),
        Stored::made(&object, "copy-1", manager, operation),
    );
    world
}

#[test]
fn only_what_bears_every_mark_of_ours_goes() {
    let goes = ["delete ConfigMap east/copy"];
    for operation in [Operation::Apply, Operation::Update] {
        assert_eq!(deletions(&copy(|_| {}, MANAGER, operation)), goes);
    }
    let by_label = copy(
        |object| object["metadata"]["ownerReferences"] = json!([]),
        MANAGER,
        Operation::Apply,
    );
    assert_eq!(deletions(&by_label), goes);
    for (why, world) in copies_without_one_mark() {
        assert_eq!(deletions(&world), Vec::<String>::new(), "{why}");
    }
}

/// Returns copies that must not be deleted, each with the reason.
fn copies_without_one_mark() -> [(&'static str, World); 6] {
    [
        (
            "another field manager wrote it",
            copy(|_| {}, "kube-controller-manager", Operation::Update),
        ),
        (
            "another operator wrote it",
            copy(|_| {}, "orkestra/lakes.water.example", Operation::Apply),
        ),
        (
            "it names another object",
            copy(
                |object| {
                    object["metadata"]["annotations"]["orkestra.orkspace.io/child"] =
                        json!("ConfigMap/a");
                },
                MANAGER,
                Operation::Apply,
            ),
        ),
        (
            "it names another kind",
            copy(
                |object| {
                    object["metadata"]["annotations"]["orkestra.orkspace.io/child"] =
                        json!("Secret/copy");
                },
                MANAGER,
                Operation::Apply,
            ),
        ),
        (
            "it names no object",
            copy(
                |object| object["metadata"]["annotations"] = json!({}),
                MANAGER,
                Operation::Apply,
            ),
        ),
        (
            "another controller owns it",
            copy(
                |object| object["metadata"]["ownerReferences"][0]["uid"] = json!("x"),
                MANAGER,
                Operation::Apply,
            ),
        ),
    ]
}

#[test]
fn nothing_is_pruned_while_a_name_cannot_be_rendered() {
    let mut world = changed(
        "onReconcile: { configMaps: [{ name: a }] }",
        "onReconcile: { configMaps: [{ name: '{{ .spec.name }}' }] }",
    );
    world.cr["spec"]["name"] = json!("NOT LEGAL");
    assert_eq!(world.decide().failures.len(), 1);
    assert_eq!(deletions(&world), Vec::<String>::new());
    world.cr["spec"]["name"] = json!("legal");
    assert_eq!(deletions(&world), ["delete ConfigMap east/a"]);
}

#[test]
fn a_gate_that_closes_deletes_although_another_childs_name_cannot_be_rendered() {
    let both = "onReconcile: { configMaps: [{ name: a, when: [{ field: spec.on, exists: true }] }, { name: '{{ .spec.name }}' }] }";
    let mut world = changed(both, both);
    world.cr["spec"] = json!({ "on": "yes", "name": "fine" });
    world.settle();
    world.cr["spec"] = json!({ "name": "NOT LEGAL" });
    assert_eq!(deletions(&world), ["delete ConfigMap east/a"]);
}

#[test]
fn the_inventory_holds_every_declared_kind_before_anything_is_made() {
    let plan = operator(
        "onCreate: { secrets: [{ name: s }] }
onReconcile: { deployments: [{ name: d, image: pump, when: [{ field: spec.on, exists: true }] }], configMaps: [{ name: '{{ .spec.bad }}' }] }",
    );
    let cycle = World::new(&plan, pond(&json!({}), &json!({}))).decide();
    assert_eq!(cycle.inventory.text(), "ConfigMap,Secret,Deployment.apps");
}

#[test]
fn the_inventory_shrinks_once_the_children_are_gone() {
    let mut world = changed("onReconcile: { secrets: [{ name: s }] }", NOTHING);
    assert_eq!(world.pass().cycle.inventory.text(), "ConfigMap,Secret");
    assert_eq!(world.pass().cycle.inventory.text(), "ConfigMap");
    assert_eq!(
        world.cr["metadata"]["annotations"]["orkestra.orkspace.io/inventory"],
        "ConfigMap"
    );
}

#[test]
fn a_kind_that_cannot_be_looked_at_stays_in_the_inventory() {
    let mut world = changed("onReconcile: { secrets: [{ name: s }] }", NOTHING);
    world.objects.remove(&key("Secret", "s"));
    world.unseen = BTreeSet::from([
        GroupKind::parse("Secret"),
        GroupKind::parse("Never.example.org"),
    ]);
    assert_eq!(world.decide().inventory.text(), "ConfigMap,Secret");
    world.unseen.clear();
    assert_eq!(world.decide().inventory.text(), "ConfigMap");
}

#[test]
fn nothing_is_pruned_while_a_kind_cannot_be_looked_at() {
    let mut world = changed("onReconcile: { secrets: [{ name: s }] }", NOTHING);
    world.unseen = BTreeSet::from([GroupKind::parse("Never.example.org")]);
    let deleted = |world: &World| {
        let mut words = words(&world.decide());
        words.retain(|word| word.starts_with("delete"));
        words
    };
    assert!(deleted(&world).is_empty());
    world.unseen.clear();
    assert_eq!(deleted(&world), ["delete Secret east/s"]);
}

#[test]
fn what_was_made_once_is_remembered_until_nobody_declares_it() {
    let once = "onCreate: { configMaps: [{ name: a }, { name: b, namespace: west }] }";
    let mut world = changed(once, once);
    let remembered = "ConfigMap,!ConfigMap=east/a,!ConfigMap=west/b";
    assert_eq!(world.decide().inventory.text(), remembered);
    world.objects.clear();
    assert_eq!(world.decide().inventory.text(), remembered);
    world.plan = operator("onCreate: { configMaps: [{ name: a }] }");
    assert_eq!(
        world.decide().inventory.text(),
        "ConfigMap,!ConfigMap=east/a"
    );
    world.plan = operator(NOTHING);
    assert_eq!(world.decide().inventory.text(), "ConfigMap");
}

#[test]
fn what_was_made_once_is_remembered_while_a_name_cannot_be_rendered() {
    let once = "onCreate: { configMaps: [{ name: '{{ .spec.name }}' }] }";
    let mut world = changed(once, once);
    for bad in ["NOT LEGAL", ""] {
        world.cr["spec"]["name"] = json!(bad);
        assert_eq!(
            world.decide().inventory.text(),
            "ConfigMap,!ConfigMap=east/fine"
        );
    }
}

#[test]
fn a_gate_of_a_plain_entry_that_closes_with_its_name_forgets_nothing() {
    let once = "onCreate: { configMaps: [{ name: '{{ .spec.name }}', when: [{ field: spec.name, exists: true }] }] }";
    let mut world = changed(once, once);
    world.cr["spec"] = json!({});
    assert_eq!(
        world.decide().inventory.text(),
        "ConfigMap,!ConfigMap=east/fine"
    );
    assert_eq!(deletions(&world), Vec::<String>::new());
}

#[test]
fn a_child_made_before_a_crash_enters_the_inventory() {
    let once = "onCreate: { configMaps: [{ name: a }] }";
    let mut world = changed(once, once);
    world.remember("ConfigMap");
    assert_eq!(
        world.decide().inventory.text(),
        "ConfigMap,!ConfigMap=east/a"
    );
}

#[test]
fn a_copied_child_mark_in_another_namespace_is_no_proof() {
    let mut world = World::new(&operator(NOTHING), pond(&json!({}), &json!({})));
    let source = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "other", "namespace": "west",
        "labels": { "orkestra.orkspace.io/owner-uid": UID },
        "annotations": { "orkestra.orkspace.io/child": "ConfigMap/other" },
    } });
    let stored = Stored::made(&source, "copy-2", "copier", Operation::Update);
    assert!(
        stored
            .leaves
            .keys()
            .any(|trail| trail.contains(&Step::Field("annotations".to_owned())))
    );
    world
        .objects
        .insert(key_in(Some("west"), "ConfigMap", "other"), stored);
    assert_eq!(deletions(&world), Vec::<String>::new());
}
