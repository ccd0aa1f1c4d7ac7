//! Writes of other field managers to children, and the values that result.

mod applied;

use std::collections::BTreeMap;

use orkestra_engine::reconcile::step::Intent;
use orkestra_plan::ChildKey;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    first::everything,
    leaves::{Step, Trail, leaves},
    operator::{MANAGER, operator, pond},
    server::{Operation, Stored},
    world::World,
};

/// A write of another field manager to one of the operator's leaves, selected by two numbers.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Updates the value, like `kubectl edit`.
    Updates,
    /// Removes the field.
    Removes,
    /// Applies another value with force, like a deployment tool.
    Applies,
    /// Adds a field that the operator does not render.
    Adds,
}

fn deeds() -> impl Strategy<Value = Vec<(Deed, usize, usize)>> {
    let deed = prop_oneof![
        Just(Deed::Updates),
        Just(Deed::Removes),
        Just(Deed::Applies),
        Just(Deed::Adds)
    ];
    prop::collection::vec((deed, any::<usize>(), any::<usize>()), 1..12)
}

/// Returns true if another manager can write the leaf without making it a different object: keys of list items and the operator's
/// own labels and annotations are excluded. Nulls and empty lists have no owner.
fn is_writable(trail: &Trail, value: &Value) -> bool {
    let text = format!("{trail:?}");
    let is_key = matches!(&trail[..], [.., Step::Item(keys), Step::Field(name)]
        if serde_json::from_str::<Value>(keys).unwrap().get(name).is_some());
    let is_nothing = value.is_null() || value == &json!([]);
    !is_nothing
        && !is_key
        && !text.contains("orkestra.orkspace.io/")
        && !text.contains("ownerReferences")
        && !matches!(trail.last(), Some(Step::Item(_)))
}

fn with_value(world: &World, key: &ChildKey, trail: &Trail, value: Value) -> Value {
    let stored = &world.objects[key];
    let mut object = json!({ "kind": stored.object()["kind"] });
    let mut only = super::leaves::Leaves::new();
    only.insert(trail.clone(), value);
    for (name, part) in super::leaves::object(&only).as_object().unwrap() {
        object[name] = part.clone();
    }
    object
}

/// Returns the leaves of the rendered children, by key.
fn wanted(world: &World) -> BTreeMap<ChildKey, super::leaves::Leaves> {
    let cycle = world.decide();
    let rendered = cycle.intents.iter().filter_map(|intent| match intent {
        Intent::Apply(rendered) => Some((rendered.key.clone(), leaves(&rendered.object.to_json()))),
        _ => None,
    });
    rendered.collect()
}

fn do_deeds(world: &mut World, deeds: &[(Deed, usize, usize)]) -> Vec<(ChildKey, Trail)> {
    let wanted = wanted(world);
    let keys: Vec<&ChildKey> = wanted.keys().collect();
    let mut added = Vec::new();
    for (count, (deed, which, at)) in deeds.iter().enumerate() {
        let key = keys[which % keys.len()];
        let trails: Vec<&Trail> = wanted[key]
            .iter()
            .filter(|(trail, value)| is_writable(trail, value))
            .map(|(trail, _)| trail)
            .collect();
        if trails.is_empty() {
            continue;
        }
        let trail = trails[at % trails.len()];
        let other = json!(format!("theirs-{count}"));
        match deed {
            Deed::Updates => world
                .objects
                .get_mut(key)
                .unwrap()
                .update("kubectl", |leaves| {
                    leaves.insert(trail.clone(), other);
                }),
            Deed::Removes => world
                .objects
                .get_mut(key)
                .unwrap()
                .update("kubectl", |leaves| {
                    leaves.remove(trail);
                }),
            Deed::Applies => {
                let body = with_value(world, key, trail, other);
                world
                    .objects
                    .get_mut(key)
                    .unwrap()
                    .apply(&body, "gitops", true)
                    .unwrap();
            }
            Deed::Adds => {
                let field = |name: String| Step::Field(name);
                let own = vec![
                    field("metadata".into()),
                    field("annotations".into()),
                    field(format!("example.org/{count}")),
                ];
                world
                    .objects
                    .get_mut(key)
                    .unwrap()
                    .update("kubectl", |leaves| {
                        leaves.insert(own.clone(), other);
                    });
                added.push((key.clone(), own));
            }
        }
    }
    added
}

/// Returns true if another manager owns the leaf by apply, and the operator does not share it.
fn is_held(objects: &BTreeMap<ChildKey, Stored>, key: &ChildKey, trail: &Trail) -> bool {
    let applies = |manager: &str| {
        let writer = (manager.to_owned(), Operation::Apply);
        objects[key]
            .owners
            .get(&writer)
            .is_some_and(|owned| owned.contains(trail))
    };
    applies("gitops") && !applies(MANAGER)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn strangers_keep_what_they_apply_and_lose_what_they_update(rounds in prop::collection::vec(deeds(), 1..3)) {
        let mut world = everything();
        world.settle();
        let wanted = wanted(&world);
        for deeds in rounds {
            let added = do_deeds(&mut world, &deeds);
            let others = world.objects.clone();
            let pass = world.pass();
            for (key, leaves) in &wanted {
                for (trail, value) in leaves {
                    if is_held(&others, key, trail) {
                        prop_assert_eq!(world.objects[key].leaves.get(trail), others[key].leaves.get(trail));
                        prop_assert!(pass.held.iter().any(|(child, held)| child == key && held.manager == "gitops"), "{} {:?}", key, trail);
                    } else {
                        prop_assert_eq!(world.objects[key].leaves.get(trail), Some(value), "{} {:?}", key, trail);
                        let owners = world.objects[key].owners_of(trail);
                        prop_assert!(owners.contains(&&(MANAGER.to_owned(), Operation::Apply)), "{} {:?}", key, trail);
                    }
                }
            }
            for (key, trail) in added {
                prop_assert_eq!(world.objects[&key].leaves.get(&trail), others[&key].leaves.get(&trail));
            }
            prop_assert_eq!(world.pass().written, []);
        }
    }

    #[test]
    fn with_force_conflict_nothing_of_ours_stays_with_strangers(deeds in deeds()) {
        let mut world = forcing();
        world.settle();
        let wanted = wanted(&world);
        do_deeds(&mut world, &deeds);
        let pass = world.pass();
        prop_assert_eq!(pass.held, []);
        for (key, leaves) in &wanted {
            for (trail, value) in leaves {
                prop_assert_eq!(world.objects[key].leaves.get(trail), Some(value), "{} {:?}", key, trail);
            }
        }
        prop_assert_eq!(world.pass().written, []);
    }
}

const FORCING: &str = "onReconcile:
  configMaps: [{ name: a, forceConflict: true, data: { x: '1', y: '{{ .spec.y }}' }, annotations: { n: '1' } }]
  deployments: [{ name: d, forceConflict: true, image: pump, replicas: 2, port: 80, env: { A: b }, labels: { t: u } }]";

fn forcing() -> World {
    World::new(&operator(FORCING), pond(&json!({ "y": "2" }), &json!({})))
}

fn two_keys(force: bool) -> World {
    let text = format!(
        "onReconcile: {{ configMaps: [{{ name: a, forceConflict: {force}, data: {{ x: '{{{{ .spec.x }}}}', y: '2' }} }}] }}"
    );
    let mut world = World::new(&operator(&text), pond(&json!({ "x": "1" }), &json!({})));
    world.settle();
    world
}

#[test]
fn an_empty_map_that_somebody_replaced_comes_back() {
    let mut world = everything();
    world.settle();
    let before = world.stored("Deployment.apps", "pond").leaves.clone();
    world
        .stored("Deployment.apps", "pond")
        .update("kubectl", |leaves| {
            leaves.retain(
                |trail, _| !matches!(trail.last(), Some(Step::Field(name)) if name == "emptyDir"),
            );
        });
    world.settle();
    assert_eq!(world.stored("Deployment.apps", "pond").leaves, before);
}

#[test]
fn a_removed_owner_reference_comes_back() {
    let mut world = two_keys(false);
    world.stored("ConfigMap", "a").update("kubectl", |leaves| {
        leaves.retain(|trail, _| !format!("{trail:?}").contains("ownerReferences"));
    });
    world.settle();
    let object = world.stored("ConfigMap", "a").object();
    assert_eq!(object["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_changed_hash_is_corrected() {
    let mut world = two_keys(false);
    let before = world.stored("ConfigMap", "a").leaves.clone();
    let applied = ["metadata", "annotations", "orkestra.orkspace.io/applied"];
    let applied: Trail = applied
        .into_iter()
        .map(|name| Step::Field(name.to_owned()))
        .collect();
    world.stored("ConfigMap", "a").update("kubectl", |leaves| {
        leaves.insert(applied, json!("0"));
    });
    world.settle();
    assert_eq!(world.stored("ConfigMap", "a").leaves, before);
}
