//! Fields of children that other field managers apply: they are left alone, taken over or shared.

use serde_json::json;

use super::two_keys;
use crate::pass::{
    leaves::{Step, Trail, object},
    world::{World, key},
};

fn data(name: &str) -> Trail {
    vec![Step::Field("data".to_owned()), Step::Field(name.to_owned())]
}

#[test]
fn a_held_field_is_reported_with_its_manager_and_path() {
    let mut world = two_keys(false);
    let theirs = json!({ "kind": "ConfigMap", "data": { "x": "9" } });
    world
        .stored("ConfigMap", "a")
        .apply(&theirs, "gitops", true)
        .unwrap();
    let pass = world.pass();
    assert_eq!(pass.written, []);
    let [(child, held)] = &pass.held[..] else {
        panic!("{:?}", pass.held)
    };
    assert_eq!(
        (child, held.path.to_string(), &*held.manager),
        (&key("ConfigMap", "a"), "data.x".to_owned(), "gitops")
    );
}

#[test]
fn a_held_field_stays_held_while_others_of_ours_change() {
    let mut world = two_keys(false);
    let theirs = json!({ "kind": "ConfigMap", "data": { "x": "9" } });
    world
        .stored("ConfigMap", "a")
        .apply(&theirs, "gitops", true)
        .unwrap();
    world.cr["spec"]["x"] = json!("5");
    world.stored("ConfigMap", "a").update("kubectl", |leaves| {
        leaves.insert(data("y"), json!("drift"));
    });
    world.settle();
    assert_eq!(
        world.stored("ConfigMap", "a").object()["data"],
        json!({ "x": "9", "y": "2" })
    );
}

#[test]
fn a_field_that_its_holder_releases_is_ours_again() {
    let mut world = two_keys(false);
    let theirs = json!({ "kind": "ConfigMap", "data": { "x": "9" } });
    world
        .stored("ConfigMap", "a")
        .apply(&theirs, "gitops", true)
        .unwrap();
    world.settle();
    world
        .stored("ConfigMap", "a")
        .apply(&json!({ "kind": "ConfigMap" }), "gitops", true)
        .unwrap();
    let pass = world.settle();
    assert_eq!(pass.held, []);
    assert_eq!(
        world.stored("ConfigMap", "a").object()["data"],
        json!({ "x": "1", "y": "2" })
    );
}

#[test]
fn force_conflict_takes_a_field_that_another_applies() {
    let mut world = two_keys(true);
    let theirs = json!({ "kind": "ConfigMap", "data": { "x": "9" } });
    world
        .stored("ConfigMap", "a")
        .apply(&theirs, "gitops", true)
        .unwrap();
    let pass = world.pass();
    assert_eq!((pass.held.len(), pass.written.len()), (0, 1));
    assert_eq!(world.stored("ConfigMap", "a").object()["data"]["x"], "1");
}

#[test]
fn an_equal_value_that_another_applies_is_shared_and_needs_no_write() {
    let mut world = two_keys(false);
    let theirs = json!({ "kind": "ConfigMap", "data": { "x": "1" } });
    world
        .stored("ConfigMap", "a")
        .apply(&theirs, "gitops", false)
        .unwrap();
    let pass = world.pass();
    assert_eq!((pass.held.len(), pass.written.len()), (0, 0));
}

/// Returns a world with `a`, whose `data.x` and `data.y` are also applied by `gitops`, after the custom resource's `x` changed.
fn shared(force: bool) -> World {
    let mut world = two_keys(force);
    let theirs = json!({ "kind": "ConfigMap", "data": { "x": "1", "y": "2" } });
    world
        .stored("ConfigMap", "a")
        .apply(&theirs, "gitops", false)
        .unwrap();
    world.cr["spec"]["x"] = json!("5");
    world
}

#[test]
fn a_shared_field_that_changes_for_us_stays_with_the_other_and_the_rest_stays_shared() {
    let mut world = shared(false);
    for written in [1, 0] {
        let pass = world.pass();
        let held: Vec<String> = pass
            .held
            .iter()
            .map(|(_, held)| held.path.to_string())
            .collect();
        assert_eq!(
            (held, pass.written.len()),
            (vec!["data.x".to_owned()], written)
        );
    }
    let stored = world.stored("ConfigMap", "a");
    assert_eq!(stored.object()["data"], json!({ "x": "1", "y": "2" }));
    assert_eq!(stored.owners_of(&data("x")).len(), 1);
    assert_eq!(stored.owners_of(&data("y")).len(), 2);

    stored
        .apply(&json!({ "kind": "ConfigMap" }), "gitops", true)
        .unwrap();
    assert_eq!(world.settle().held, []);
    let stored = world.stored("ConfigMap", "a");
    assert_eq!(stored.object()["data"], json!({ "x": "5", "y": "2" }));
}

#[test]
fn force_conflict_takes_a_shared_field_that_changes() {
    let mut world = shared(true);
    let pass = world.pass();
    assert_eq!((pass.held.len(), pass.written.len()), (0, 1));
    let stored = world.stored("ConfigMap", "a");
    assert_eq!(stored.object()["data"], json!({ "x": "5", "y": "2" }));
    assert_eq!(world.pass().written, []);
}

#[test]
fn who_applies_an_exported_child_does_not_keep_us_from_telling_what_we_applied() {
    let mut world = two_keys(false);
    let stored = world.stored("ConfigMap", "a");
    let exported = object(&stored.leaves);
    let mut theirs = json!({ "kind": "ConfigMap" });
    for (name, part) in exported.as_object().unwrap() {
        theirs[name] = part.clone();
    }
    stored.apply(&theirs, "gitops", false).unwrap();
    world.cr["spec"]["x"] = json!("5");
    let pass = world.pass();
    assert_eq!((pass.held.len(), pass.written.len()), (1, 1));
    assert_eq!(world.pass().written, []);
}
