//! Custom resources that a backup tool restored, and children that keep values.

use orkestra_engine::reconcile::{
    reason::Reason,
    sources::{Answer, Read},
};
use serde_json::{Value, json};

use super::{
    operator::{UID, operator, pond},
    report::at,
    world::{World, key, words},
};

const LOGIN: &str = "onCreate:
  secrets: [{ name: login, once: true, data: { password: '{{ randomAlphanumeric 16 }}' } }]
  configMaps: [{ name: token, data: { token: '{{ randomAlphanumeric 16 }}' } }, { name: plain, data: { a: b } }]";
const OWNER: &str = "/metadata/annotations/orkestra.orkspace.io~1owner";

fn world() -> World {
    let mut world = World::new(&operator(LOGIN), pond(&json!({}), &json!({})));
    world.now = at(0);
    world.cr["metadata"]["creationTimestamp"] = json!(at(0).to_string());
    world
}

fn references(object: &Value) -> bool {
    object["metadata"].get("ownerReferences").is_some()
}

#[test]
fn children_that_keep_values_have_no_owner_reference() {
    let mut world = world();
    world.settle();
    for (kind, name, owned) in [
        ("Secret", "login", false),
        ("ConfigMap", "token", false),
        ("ConfigMap", "plain", true),
    ] {
        let object = world.objects[&key(kind, name)].object();
        assert_eq!(references(&object), owned, "{name}");
        let owner = object.pointer(OWNER).and_then(Value::as_str);
        assert_eq!(owner.is_some_and(|text| text.ends_with(UID)), !owned);
    }
    assert!(world.pass().written.is_empty());
}

#[test]
fn without_our_finalizer_they_are_owned() {
    let declared = format!("finalizers: []\n{LOGIN}");
    let mut world = World::new(&operator(&declared), pond(&json!({}), &json!({})));
    world.settle();
    assert!(references(&world.objects[&key("Secret", "login")].object()));
}

#[test]
fn a_restored_resource_waits_for_its_values_and_not_for_ever() {
    let mut world = world();
    world.remember("ConfigMap,Secret,!ConfigMap=east/token,#another");
    let cycle = world.decide();
    let failed: Vec<Reason> = cycle.failures.iter().map(|failed| failed.reason).collect();
    assert_eq!(failed, [Reason::RestorePending, Reason::RestorePending]);
    assert_eq!(
        words(&cycle),
        [
            "keep Secret east/login",
            "keep ConfigMap east/token",
            "create ConfigMap east/plain"
        ]
    );
    assert_eq!(cycle.wake, Some(at(30)));
    assert!(cycle.inventory.text_on(&UID.into()).ends_with(",#"));
    assert!(
        cycle.inventory.made.is_empty(),
        "{:?}",
        cycle.inventory.made
    );

    // It exists: the executor adopts it.
    let read = Read::Object(key("Secret", "login"));
    let found = Answer::Ready(orkestra_object::value::Node::default().into());
    world.outside.insert(read.clone(), found);
    let cycle = world.decide();
    assert_eq!(words(&cycle)[0], "create Secret east/login");
    assert_eq!(cycle.failures.len(), 1);

    world.outside.clear();
    world.now = at(30);
    let pass = world.pass();
    assert_eq!(pass.cycle.failures, []);
    assert_eq!(pass.written.len(), 3);
    assert!(
        pass.cycle
            .inventory
            .text_on(&UID.into())
            .ends_with(&format!(",#{UID}"))
    );
}

#[test]
fn a_new_resource_does_not_wait() {
    for inventory in ["ConfigMap,Secret", &format!("ConfigMap,Secret,#{UID}")] {
        let mut world = world();
        world.remember(inventory);
        assert_eq!(world.pass().cycle.failures, [], "{inventory}");
    }
}
