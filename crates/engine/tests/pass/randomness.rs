//! Random values are drawn once, kept, and different for each child. The time is the same for the whole pass.

use orkestra_engine::reconcile::verdict::Executed;
use orkestra_plan::ChildKey;
use serde_json::{Value, json};

use super::{
    operator::{open_crd_status, operator, pond},
    report::{at, patch},
    world::{World, key, rendered, words},
};

const KEYS: &str = "onCreate:
  secrets:
    - { name: one, data: { key: '{{ randomAlphanumeric 16 }}', id: '{{ uuidv4 }}' } }
    - { name: two, data: { key: '{{ randomAlphanumeric 16 }}' } }
  configMaps:
    - { name: plain, data: { twice: '{{ $k := randomHex 8 }}{{ $k }}-{{ $k }}' } }";

fn data(world: &World, key: &ChildKey) -> Value {
    world.objects[key].object()["data"].clone()
}

#[test]
fn what_is_made_once_keeps_the_values_that_it_was_made_with() {
    let mut world = World::new(&operator(KEYS), pond(&json!({}), &json!({})));
    let first = world.pass();
    assert_eq!(first.cycle.failures, []);
    assert_eq!(first.written.len(), 3);
    let before = data(&world, &key("Secret", "one"));
    assert_eq!(
        before["key"].as_str().unwrap().len(),
        24,
        "the value must be base64 of 16 characters"
    );
    // Another pass draws from another seed, but writes nothing.
    world.cr["spec"]["n"] = json!(1);
    let second = world.pass();
    assert_eq!(second.written, []);
    assert!(
        words(&second.cycle)
            .iter()
            .all(|word| word.starts_with("keep "))
    );
    assert_eq!(data(&world, &key("Secret", "one")), before);
}

#[test]
fn each_child_draws_for_itself_and_one_evaluation_sees_one_value() {
    let mut world = World::new(&operator(KEYS), pond(&json!({}), &json!({})));
    world.pass();
    let (one, two) = (
        data(&world, &key("Secret", "one")),
        data(&world, &key("Secret", "two")),
    );
    assert_ne!(one["key"], two["key"]);
    let twice = data(&world, &key("ConfigMap", "plain"))["twice"].clone();
    let (a, b) = twice.as_str().unwrap().split_once('-').unwrap();
    assert_eq!((a, a.len()), (b, 16));
}

#[test]
fn what_a_child_draws_depends_on_its_custom_resource_and_not_on_its_neighbours() {
    let plan = operator(KEYS);
    let drawn = |world: &World| {
        let cycle = world.decide();
        rendered(&cycle, &key("Secret", "two")).object.to_json()["data"].clone()
    };
    let world = World::new(&plan, pond(&json!({}), &json!({})));
    assert_eq!(drawn(&world), drawn(&world), "equal seeds, equal values");
    let mut other = World::new(&plan, pond(&json!({}), &json!({})));
    other.cr["metadata"]["uid"] = json!("another");
    assert_ne!(drawn(&world), drawn(&other));
    let alone = World::new(
        &operator(
            "onCreate: { secrets: [{ name: two, data: { key: '{{ randomAlphanumeric 16 }}' } }] }",
        ),
        pond(&json!({}), &json!({})),
    );
    assert_eq!(drawn(&world), drawn(&alone));
}

#[test]
fn who_reconciles_may_read_what_was_drawn() {
    let mut world = World::new(
        &operator(
            "onCreate: { secrets: [{ name: key, data: { key: '{{ randomHex 8 }}' } }] }
onReconcile: { configMaps: [{ name: seen, data: { key: '{{ fromBase64 .children.secret.data.key }}' } }] }",
        ),
        pond(&json!({}), &json!({})),
    );
    world.settle();
    let key_of = |name: &str, kind: &str| data(&world, &key(kind, name))["key"].clone();
    assert_eq!(key_of("seen", "ConfigMap").as_str().unwrap().len(), 16);
}

#[test]
fn a_pass_has_one_moment_and_so_has_its_status() {
    let mut world = World::new(
        &operator(
            "onReconcile: { configMaps: [{ name: seen, data: { ago: '{{ timeSince .spec.at }}' } }] }
status: { fields: [{ path: ago, value: '{{ timeSince .spec.at }}' }] }",
        ),
        pond(&json!({ "at": at(0).to_string() }), &json!({})),
    );
    for seconds in [7, 3600] {
        world.now = at(seconds);
        world.pass();
        let seen = data(&world, &key("ConfigMap", "seen"))["ago"].clone();
        assert_eq!(seen, json!(seconds.to_string()));
        let patch = patch(
            &world,
            &open_crd_status(),
            &mut Executed::default(),
            seconds,
        )
        .unwrap();
        assert_eq!(patch.body.to_json()["status"]["ago"], json!(seconds));
    }
}
