//! What `enrich` adds to children.

use std::sync::Arc;

use orkestra_core::{
    api::EnrichTarget,
    plan::{GroupKind, OperatorPlan, Schemas},
    reconcile::{
        reason::Reason,
        related::{RelatedRead, belonging},
        sources::{Answer, Read},
    },
    value::Node,
};
use serde_json::{Value, json};

use super::{
    operator::{of_document, pond},
    world::{World, key, rendered, words},
};

const KATALOG: &str = r#"
apiVersion: orkestra.orkspace.io/v1
kind: Katalog
metadata: { name: waters }
spec:
  crds:
    pond:
      apiTypes: { group: water.example, version: v1, kind: Pond, plural: ponds }
      namespaced: true
      enrich: ENRICH
      operatorBox:
        onReconcile:
          deployments: [{ name: web, image: "nginx:1" }]
          configMaps:
            - name: a
              data:
                ready: "{{ readyPodCount .children.deployment }}"
                names: '{{ range .children.deployment._pods }}{{ .name }} {{ end }}'
            - name: b
              onFalse: delete
              when: [{ field: '{{ hasCrashingPod .children.deployments.web }}', equals: true }]
"#;

fn operator(enrich: &str) -> Arc<OperatorPlan> {
    of_document(&KATALOG.replace("ENRICH", enrich), &Schemas::default())
}

fn pods(world: &World) -> Read {
    let child = key("Deployment.apps", "web");
    let kind = GroupKind::parse("Pond.water.example");
    let cr = world.cr();
    let owner = (&kind, &cr.id.key);
    Read::Related(RelatedRead {
        target: EnrichTarget::Pods,
        of: belonging(EnrichTarget::Pods, owner, &child, "any"),
    })
}

fn ready(list: &Value) -> Answer {
    Answer::Ready(Arc::new(Node::from(list)))
}

fn count(world: &World) -> Value {
    let cycle = world.decide();
    let object = &rendered(&cycle, &key("ConfigMap", "a")).object;
    let data = &object.to_json()["data"];
    let names = data["names"].as_str().unwrap_or_default();
    assert!(
        names.is_empty() || names == "x y " || names == "x ",
        "{names}"
    );
    data["ready"].clone()
}

#[test]
fn the_pods_of_a_workload_are_there_once_it_is() {
    let mut world = World::new(&operator("[pods]"), pond(&json!({}), &json!({})));
    assert_eq!(count(&world), "0");
    world.settle();
    let list =
        json!([{ "name": "x", "ready": true, "restartCount": 9 }, { "name": "y", "ready": false }]);
    let read = pods(&world);
    world.outside.insert(read, ready(&list));
    assert_eq!(count(&world), "1");
    assert!(words(&world.decide()).contains(&"apply ConfigMap east/b".to_owned()));
}

#[test]
fn nothing_is_added_that_is_not_declared_or_whose_gate_is_closed() {
    let gated = "[{ pods: { when: [{ field: spec.watched, equals: true }] } }]";
    for (enrich, watched, expected) in [("[]", true, "0"), (gated, false, "0"), (gated, true, "1")]
    {
        let spec = json!({ "watched": watched });
        let mut world = World::new(&operator(enrich), pond(&spec, &json!({})));
        world.settle();
        let read = pods(&world);
        world
            .outside
            .insert(read, ready(&json!([{ "name": "x", "ready": true }])));
        assert_eq!(count(&world), expected, "{enrich} {watched}");
    }
}

#[test]
fn pods_that_cannot_be_read_leave_their_readers_as_they_are() {
    let mut world = World::new(&operator("[pods]"), pond(&json!({}), &json!({})));
    world.settle();
    let read = pods(&world);
    let why = Answer::Unavailable("no right to list pods".into());
    world.outside.insert(read, why);
    let cycle = world.decide();
    assert_eq!(
        words(&cycle),
        [
            "keep ConfigMap east/a",
            "keep ConfigMap east/b",
            "apply Deployment.apps east/web",
        ]
    );
    assert!(
        cycle
            .failures
            .iter()
            .all(|failure| failure.reason == Reason::Unavailable)
    );
}

#[test]
fn only_what_templates_read_is_asked_for() {
    let plan = operator("[pods, replicasets, endpoints]");
    let read: Vec<_> = plan
        .enrich
        .iter()
        .filter(|entry| {
            let mut kinds = plan.reads.children.keys();
            kinds.any(|kind| entry.is_read(&plan.reads, kind))
        })
        .map(|entry| entry.target.word())
        .collect();
    assert_eq!(read, ["pods"]);
}

#[test]
fn a_gate_that_asks_for_the_time_is_looked_at_again() {
    let plan = operator("[pods: { when: [{ time: { after: '02:00' } }] }]");
    let mut world = World::new(&plan, pond(&json!({}), &json!({})));
    world.settle();
    world.now = "2026-03-02T01:00:00Z".parse().unwrap();
    let wake = world.decide().wake;
    assert_eq!(wake, Some("2026-03-02T02:00:00Z".parse().unwrap()));
}
